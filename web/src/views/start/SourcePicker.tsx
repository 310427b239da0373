// One side of a comparison: a file of this browser (dropped or picked, then uploaded) or a path on the machine
// of the server (opened where it is, never copied).
import { useId, useRef, useState } from "preact/hooks";
import { bytes, percent } from "../../format";
import { FileIcon, FolderIcon } from "../../ui/icons";
import { Name } from "../../ui/Name";
import { Progress } from "../../ui/Progress";
import { FolderDialog } from "./FolderDialog";

export type Choice = { kind: "file"; file: File } | { kind: "path"; path: string };

interface Props {
  label: string;
  hint: string;
  choice: Choice | null;
  /** How much of the upload is done; null: none under way. */
  progress: number | null;
  error: string | null;
  onChoose: (choice: Choice | null) => void;
  onFiles: (files: File[]) => void;
}

function Chosen({ choice, progress, onClear }: { choice: Choice; progress: number | null; onClear: () => void }) {
  return (
    <div class="chosen">
      <p><FileIcon /><Name text={choice.kind === "file" ? choice.file.name : choice.path} /></p>
      {choice.kind === "file" && <p class="dim">{progress === null ? `${bytes(choice.file.size)}, will be uploaded` : `${percent(progress)} of ${bytes(choice.file.size)} uploaded`}</p>}
      {choice.kind === "path" && <p class="dim">on this machine, opened in place</p>}
      {progress !== null ? <Progress label={`Upload of ${choice.kind === "file" ? choice.file.name : ""}`} share={progress} />
        : <button type="button" class="plain" onClick={onClear}>Choose another</button>}
    </div>
  );
}

function PathField({ label, onPath }: { label: string; onPath: (path: string) => void }) {
  const [path, setPath] = useState("");
  const [browsing, setBrowsing] = useState(false);
  const id = useId();
  const browse = useRef<HTMLButtonElement>(null);
  const use = () => path.trim() && onPath(path.trim());
  return (
    <div class="path-field">
      <label for={id} class="sr-only">Path on this machine for {label}</label>
      <input id={id} class="mono" value={path} placeholder="or a path on this machine" spellcheck={false} autocomplete="off"
        onInput={(event) => setPath(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" && use()} onBlur={(event) => event.relatedTarget !== browse.current && use()} />
      <button type="button" ref={browse} onClick={() => setBrowsing(true)}><FolderIcon /> Browse</button>
      {browsing && <FolderDialog onClose={() => setBrowsing(false)} onChoose={(chosen) => { setBrowsing(false); onPath(chosen); }} />}
    </div>
  );
}

export function SourcePicker({ label, hint, choice, progress, error, onChoose, onFiles }: Props) {
  const [over, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onFiles([...(event.dataTransfer?.files ?? [])]);
  };
  const picked = () => {
    onFiles([...(picker.current?.files ?? [])]);
    picker.current!.value = "";
  };
  return (
    <section class={`panel source${over ? " over" : ""}`} aria-label={label}
      onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop}>
      <h2>{label}</h2>
      {choice ? <Chosen choice={choice} progress={progress} onClear={() => onChoose(null)} /> : (
        <>
          <p class="dim drop-hint">{hint}</p>
          <div class="source-actions">
            <button type="button" onClick={() => picker.current!.click()}>Choose file…</button>
            <PathField label={label} onPath={(path) => onChoose({ kind: "path", path })} />
          </div>
        </>
      )}
      <input ref={picker} type="file" multiple hidden aria-label={`File for ${label}`} onChange={picked} />
      {error && <p class="field-error" role="alert">{error}</p>}
    </section>
  );
}
