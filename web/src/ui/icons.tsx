// The few icons there are, drawn on 16 x 16 with the colour of the text.
function Icon({ d }: { d: string }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={d} />
    </svg>
  );
}

export const FileIcon = () => <Icon d="M4 1.5h5l3 3v10H4zM9 1.5v3h3" />;
export const FolderIcon = () => <Icon d="M1.5 3.5h4.5l1.5 2h7v8h-13z" />;
export const SunMoonIcon = () => <Icon d="M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12" />;
export const SettingsIcon = () => <Icon d="M2 4.5h7M13 4.5h1M2 11.5h1M7 11.5h7M11 2.5v4M5 9.5v4" />;
export const ExportIcon = () => <Icon d="M8 2v8M5 7l3 3 3-3M2.5 13.5h11" />;
export const TrashIcon = () => <Icon d="M2.5 4.5h11M6 4V2.5h4V4M4 4.5l.6 9h6.8l.6-9" />;
export const SwapIcon = () => <Icon d="M2 5.5h11M10.5 3l2.5 2.5L10.5 8M14 10.5H3M5.5 8L3 10.5 5.5 13" />;
export const LinkIcon = () => <Icon d="M6.5 9.5l3-3M7 4.5l2-2a3 3 0 0 1 4.5 4.5l-2 2M9 11.5l-2 2A3 3 0 0 1 2.5 9l2-2" />;
export const GripIcon = () => <Icon d="M6 4v.01M6 8v.01M6 12v.01M10 4v.01M10 8v.01M10 12v.01" />;
