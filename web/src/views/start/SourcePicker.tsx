// One side of a comparison: a file of this browser (dropped or picked, then uploaded) or a path on the machine
// of the server (opened where it is, never copied).
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { bytes, percent, plural } from "../../format";
import { message } from "../../state";
import { FileIcon, FolderIcon } from "../../ui/icons";
import { Name } from "../../ui/Name";
import { Progress } from "../../ui/Progress";
import { FolderDialog } from "./FolderDialog";
import { dropped, type Given, picked } from "./given";

export type Choice = ({ kind: "file" } & Given) | { kind: "path"; path: string };

interface Props {
  label: string;
  hint: string;
  choice: Choice | null;
  /** The path in the field; it counts as chosen before it is done with. */
  typed: string;
  /** How much of the upload is done; null: none under way. */
  progress: number | null;
  error: string | null;
  onChoose: (choice: Choice | null) => void;
  onType: (path: string) => void;
  onGiven: (given: Given[]) => void;
  onTrouble: (text: string) => void;
}

function Chosen({ choice, progress, onClear }: { choice: Choice; progress: number | null; onClear: () => void }) {
  const another = useRef<HTMLButtonElement>(null);
  // It stands where the field was: a focus that went with the field comes here.
  useEffect(() => void (document.activeElement === document.body && another.current?.focus()), []);
  return (
    <div class="chosen">
      <p><FileIcon /><Name text={choice.kind === "file" ? choice.file.name : choice.path} /></p>
      {choice.kind === "file" && (
        <p class="dim">
          {choice.holds !== undefined && `${plural(choice.holds, "file")}, `}
          {progress === null ? `${bytes(choice.file.size)}, will be uploaded` : `${percent(progress)} of ${bytes(choice.file.size)} uploaded`}
        </p>
      )}
      {choice.kind === "path" && <p class="dim">on this machine, opened in place</p>}
      {progress !== null ? <Progress label={`Upload of ${choice.kind === "file" ? choice.file.name : ""}`} share={progress} />
        : <button type="button" ref={another} class="plain" onClick={onClear}>Choose another</button>}
    </div>
  );
}

interface PathProps {
  label: string;
  typed: string;
  onType: (path: string) => void;
  onPath: (path: string) => void;
}

/** A path is done with on Enter and when the focus leaves: not towards Browse, which would be gone before it is pressed. */
function PathField({ label, typed, onType, onPath }: PathProps) {
  const [browsing, setBrowsing] = useState(false);
  const id = useId();
  const use = () => typed.trim() && onPath(typed.trim());
  const entered = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // else the same stroke would press the button that takes the focus
    use();
  };
  const left = (event: FocusEvent & { currentTarget: HTMLElement }) =>
    !(event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget)) && !browsing && use();
  return (
    <div class="path-field" onFocusOut={left}>
      <label for={id} class="sr-only">Path on this machine for {label}</label>
      <input id={id} class="mono" value={typed} placeholder="or a path on this machine" spellcheck={false} autocomplete="off"
        onInput={(event) => onType(event.currentTarget.value)} onKeyDown={entered} />
      <button type="button" onClick={() => setBrowsing(true)}><FolderIcon /> Browse</button>
      {browsing && <FolderDialog onClose={() => setBrowsing(false)} onChoose={(chosen) => { setBrowsing(false); onPath(chosen); }} />}
    </div>
  );
}

interface PickProps {
  label: string;
  isFolder?: boolean;
  onPick: (files: File[]) => void;
}

function Pick({ label, isFolder = false, onPick }: PickProps) {
  const picker = useRef<HTMLInputElement>(null);
  const take = () => {
    onPick([...(picker.current?.files ?? [])]);
    picker.current!.value = "";
  };
  const ofFolders = { webkitdirectory: isFolder }; // unknown to the types of JSX
  return (
    <>
      <button type="button" onClick={() => picker.current!.click()}>{isFolder ? <><FolderIcon /> Choose folder…</> : <><FileIcon /> Choose files…</>}</button>
      <input ref={picker} type="file" multiple {...ofFolders} hidden aria-label={`${isFolder ? "Folder" : "Files"} for ${label}`} onChange={take} />
    </>
  );
}

export function SourcePicker({ label, hint, choice, typed, progress, error, onChoose, onType, onGiven, onTrouble }: Props) {
  const [over, setOver] = useState(false);
  const [reading, setReading] = useState(false);
  const take = async (given: () => Promise<Given[]> | Given[]) => {
    setReading(true);
    try {
      const list = await given();
      if (list.length > 0) onGiven(list);
    } catch (reason) {
      onTrouble(message(reason));
    }
    setReading(false);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer) void take(() => dropped(event.dataTransfer!));
  };
  const pick = (files: File[]) => void take(() => picked(files));
  return (
    <section class={`panel source${over ? " over" : ""}`} aria-label={label}
      onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop}>
      <h2>{label}</h2>
      {choice ? <Chosen choice={choice} progress={progress} onClear={() => onChoose(null)} /> : (
        <>
          <div class="drop-hint">
            <p class="dim">{reading ? "Reading the folder…" : hint}</p>
            <div class="buttons"><Pick label={label} onPick={pick} /><Pick label={label} isFolder onPick={pick} /></div>
          </div>
          <PathField label={label} typed={typed} onType={onType} onPath={(path) => onChoose({ kind: "path", path })} />
        </>
      )}
      {error && <p class="field-error" role="alert">{error}</p>}
    </section>
  );
}
