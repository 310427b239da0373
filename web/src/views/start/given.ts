// What somebody drops or picks: files, folders of files, or many files at once. A folder, and files that are more
// than there are sides, become one input each, as an archive of them would be.
import { type Entry, tarOf } from "./tar";

export interface Given {
  file: File;
  /** How many files it was made of, when it was made. */
  holds?: number;
}

/** More than this is no dump, but somebody's home. */
const MOST_FILES = 100_000;

/** As in a folder on the server: what a system or an editor keeps for itself. */
const isHidden = (path: string) => path.split("/").some((part) => part.startsWith("."));

function pack(name: string, entries: Entry[]): Given {
  const seen = entries.filter((entry) => !isHidden(entry.path));
  if (seen.length === 0) throw new Error(`${name}: no files in it`);
  seen.sort((x, y) => (x.path < y.path ? -1 : 1)); // browsers list a folder in any order
  return { file: tarOf(name, seen), holds: seen.length };
}

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((resolve, reject) => entry.file(resolve, reject));

/** A folder tells its entries a hundred at a time. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}

async function collect(folder: FileSystemDirectoryEntry, below: string, into: Entry[]): Promise<void> {
  for (const entry of await entriesOf(folder)) {
    const path = below + entry.name;
    if (isHidden(path)) continue;
    if (entry.isDirectory) await collect(entry as FileSystemDirectoryEntry, `${path}/`, into);
    else into.push({ path, file: await fileOf(entry as FileSystemFileEntry) });
    if (into.length > MOST_FILES) throw new Error(`more than ${MOST_FILES} files; open the folder by its path on the server`);
  }
}

async function folder(entry: FileSystemDirectoryEntry): Promise<Given> {
  const entries: Entry[] = [];
  await collect(entry, "", entries);
  return pack(entry.name, entries);
}

/** Must be called while the event is handled: what was dropped is gone afterwards. */
export function dropped({ items }: DataTransfer): Promise<Given[]> {
  const each = [...items].filter((item) => item.kind === "file").map((item) => {
    const entry = item.webkitGetAsEntry();
    if (entry?.isDirectory) return folder(entry as FileSystemDirectoryEntry);
    const file = item.getAsFile();
    return file && Promise.resolve({ file });
  });
  return Promise.all(each.filter((one) => one !== null));
}

/** Files chosen with the dialog of the browser; those of a chosen folder know where in it they are. */
export function picked(files: readonly File[]): Given[] {
  const root = files[0]?.webkitRelativePath.split("/")[0];
  if (!root) return files.map((file) => ({ file }));
  return [pack(root, files.map((file) => ({ path: file.webkitRelativePath.slice(root.length + 1), file })))];
}

/** Many as one. */
export function together(many: readonly Given[]): Given {
  return pack(`${many.length} files`, many.map(({ file }) => ({ path: file.name, file })));
}
