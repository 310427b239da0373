// Names that fit a regular expression, found by a worker within a time limit.
import type { Question } from "./regexWorker";

const PATIENCE = 2000; // milliseconds; twenty thousand names take an honest expression a hundredth of it

export const TOO_LONG = "This expression takes too long: all pairs are shown.";

// A worker that waits for the next question; one that was interrupted is gone.
let idle: Worker | null = null;

async function startWorker(): Promise<Worker> {
  const { address } = await import("./regexWorker");
  const worker = new Worker(address, { type: "module" });
  await new Promise<void>((resolve, reject) => {
    worker.onmessage = () => resolve();
    worker.onerror = () => reject(new Error("This browser starts no worker, which a regular expression needs."));
  });
  return worker;
}

function ask(worker: Worker, question: Question, signal: AbortSignal): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", interrupt);
    };
    const fail = (reason: string) => {
      settle();
      worker.terminate();
      reject(new Error(reason));
    };
    const interrupt = () => fail("interrupted");
    const timer = setTimeout(() => fail(TOO_LONG), PATIENCE);
    signal.addEventListener("abort", interrupt);
    worker.onerror = (event) => fail(event.message);
    worker.onmessage = ({ data }: MessageEvent<number[]>) => {
      settle();
      idle = worker;
      resolve(data);
    };
    worker.postMessage(question);
  });
}

/** The places of the names that fit. Throws when that takes too long, and when it is interrupted. */
export async function placesOf(source: string, names: string[], signal: AbortSignal): Promise<number[]> {
  const worker = idle ?? (await startWorker());
  idle = null;
  if (!signal.aborted) return ask(worker, { source, names }, signal);
  worker.terminate();
  throw new Error("interrupted");
}
