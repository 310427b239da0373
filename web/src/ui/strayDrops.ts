// A file dropped beside the places for it: the browser would open it instead of the page, and what was on screen
// would be gone.
export function refuseStrayDrops(): void {
  const refuse = (event: DragEvent) => {
    if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  };
  document.addEventListener("dragover", refuse);
  document.addEventListener("drop", refuse);
}
