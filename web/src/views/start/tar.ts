// Files made into one upload: a tar, since it holds any bytes as they are and the server maps its members in place.
//
//     [pax header | name and size in full]   header | file, padded to 512   …   two empty blocks
//
// A Blob is a list of what it is made of: no file is read before the upload sends it, however many there are.

export interface Entry {
  /** With "/" between its parts. */
  path: string;
  file: File;
}

const BLOCK = 512;
const LONGEST_NAME = 100;
/** What eleven octal digits hold. */
const LARGEST = 8 ** 11 - 1;

type Bytes = Uint8Array<ArrayBuffer>;

const encoder = new TextEncoder();

const padding = (size: number) => new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);

function header(name: Uint8Array, size: number, kind: string): Bytes {
  const block = new Uint8Array(BLOCK);
  const put = (at: number, text: string) => block.set(encoder.encode(text), at);
  const octal = (at: number, width: number, value: number) => put(at, value.toString(8).padStart(width, "0"));
  block.set(name.subarray(0, LONGEST_NAME));
  octal(100, 7, 0o644);
  octal(108, 7, 0);
  octal(116, 7, 0);
  octal(124, 11, Math.min(size, LARGEST));
  octal(136, 11, 0);
  put(156, kind);
  put(257, "ustar\u000000");
  put(148, "        "); // the sum is taken with its own field blank
  octal(148, 6, block.reduce((sum, byte) => sum + byte, 0));
  block[154] = 0;
  return block;
}

/** "LENGTH key=value\n", where the length counts its own digits. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const size = encoder.encode(rest).length;
  let length = size + String(size).length;
  if (String(length).length > String(size).length) length++;
  return `${length}${rest}`;
}

/** In front of what a plain header cannot say: long names, letters beyond ASCII, sizes of 8 GiB and more. */
function extension(path: string, name: Uint8Array, size: number): Bytes[] {
  if (name.length <= LONGEST_NAME && name.length === path.length && size <= LARGEST) return [];
  const text = encoder.encode(record("path", path) + record("size", String(size)));
  return [header(encoder.encode("pax"), text.length, "x"), text, padding(text.length)];
}

export function tarOf(name: string, entries: readonly Entry[]): File {
  const parts: BlobPart[] = [];
  for (const { path, file } of entries) {
    const bytes = encoder.encode(path);
    parts.push(...extension(path, bytes, file.size), header(bytes, file.size, "0"), file, padding(file.size));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return new File(parts, `${name}.tar`);
}
