// The folders of the server's machine, as far as it lets them be seen.
import { useEffect, useState } from "preact/hooks";
import * as api from "../../api";
import { bytes } from "../../format";
import type { Folder } from "../../model";
import { message } from "../../state";
import { Dialog } from "../../ui/Dialog";
import { FileIcon, FolderIcon } from "../../ui/icons";

/** Where the last one was left, for the second side. */
let lastPath: string | undefined;

export function FolderDialog({ onClose, onChoose }: { onClose: () => void; onChoose: (path: string) => void }) {
  const [path, setPath] = useState(lastPath);
  const [folder, setFolder] = useState<Folder | null>(null);
  const [error, setError] = useState<string | null>(null);
  // The path that was answered last: until it is the one asked for, the list is still that of the folder before.
  const [answered, setAnswered] = useState<string | null>(null);
  const waiting = answered !== (path ?? "");
  useEffect(() => {
    let current = true;
    api.folder(path).then((found) => {
      if (!current) return;
      setFolder(found);
      setError(null);
      setAnswered(path ?? "");
      lastPath = path;
    }, (reason: unknown) => {
      if (!current) return;
      setError(message(reason));
      setAnswered(path ?? "");
    });
    return () => void (current = false);
  }, [path]);
  const up = folder?.path ? (folder.parent ?? "") : null;
  return (
    <Dialog title="Open on this machine" onClose={onClose} wide>
      <div class="folder-head">
        <button type="button" disabled={up === null} onClick={() => setPath(up || undefined)}>↑ Up</button>
        <span class="mono folder-path">{folder?.path || "folders this server may open"}</span>
        <button type="button" class="primary" disabled={waiting || !folder?.path} onClick={() => onChoose(folder!.path!)}>Open this folder</button>
      </div>
      {error && <p class="field-error" role="alert">{error}</p>}
      <ul class="folder-list" aria-busy={waiting}>
        {folder?.entries.length === 0 && <li class="dim empty">Nothing here that tdbg reads.</li>}
        {folder?.entries.map((entry) => (
          <li key={entry.path}>
            <button type="button" class="plain" onClick={() => (entry.kind === "folder" ? setPath(entry.path) : onChoose(entry.path))}>
              {entry.kind === "folder" ? <FolderIcon /> : <FileIcon />}
              <span class="entry-name">{entry.name}{entry.kind === "folder" ? "/" : ""}</span>
              <span class="dim">{entry.kind === "file" ? bytes(entry.bytes) : ""}</span>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
