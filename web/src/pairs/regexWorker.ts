// Tests names with a regular expression, on a thread of its own that can be ended: an expression that backtracks
// without end would hold the page for good. The page imports this module late and for its address alone, so that it
// is a script by itself.
export interface Question {
  source: string;
  names: string[];
}

export const address = import.meta.url;

// The first message says that the thread is there: the time limit begins then. Each of the others is an answer, the
// places of the names that fit.
if (typeof document === "undefined") {
  self.onmessage = ({ data }: MessageEvent<Question>) => {
    const pattern = new RegExp(data.source, "i");
    self.postMessage(data.names.flatMap((name, at) => (pattern.test(name) ? [at] : [])));
  };
  self.postMessage(null);
}
