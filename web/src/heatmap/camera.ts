// Which part of a matrix a pane shows.
//
// Coordinates are elements, x to the right along the columns, y down along the rows; `scale` is pixels of the
// page for one element. All panes share one camera, so they always show the same place. A camera is a plain
// value: every move gives a new one.

export interface Camera {
  x: number; // the middle of the pane
  y: number;
  scale: number;
}

export interface Extent {
  width: number;
  height: number;
}

/** A single value is at most this large on screen: room for a number with its digits. */
const largestScale = 120;

function fitScale(matrix: Extent, pane: Extent): number {
  return Math.min(pane.width / Math.max(matrix.width, 1), pane.height / Math.max(matrix.height, 1));
}

/** The whole matrix. One so long that it would be a hair line is shown by its beginning, a few pixels high. */
export function fit(matrix: Extent, pane: Extent): Camera {
  const whole = Math.min(fitScale(matrix, pane), largestScale);
  const shorter = Math.min(matrix.width, matrix.height);
  const scale = whole * shorter >= 24 ? whole : Math.min(24 / Math.max(shorter, 1), largestScale);
  return confine({ x: matrix.width / 2, y: matrix.height / 2, scale: Math.max(scale, whole) }, matrix, pane, true);
}

/** Keeps the matrix in sight: centred where it is smaller than the pane, else without a gap at its edges. */
export function confine(camera: Camera, matrix: Extent, pane: Extent, atStart = false): Camera {
  const least = Math.min(fitScale(matrix, pane), 1) * 0.8;
  const scale = Math.min(Math.max(camera.scale, least), largestScale);
  const axis = (at: number, size: number, room: number): number => {
    const half = room / scale / 2;
    if (size <= half * 2) return size / 2;
    return atStart ? half : Math.min(Math.max(at, half), size - half);
  };
  return { scale, x: axis(camera.x, matrix.width, pane.width), y: axis(camera.y, matrix.height, pane.height) };
}

/** Zooms so that what lies under (px, py) of the pane stays there. */
export function zoomAt(camera: Camera, px: number, py: number, factor: number, pane: Extent): Camera {
  const scale = Math.min(camera.scale * factor, largestScale);
  const dx = px - pane.width / 2;
  const dy = py - pane.height / 2;
  return {
    x: camera.x + dx / camera.scale - dx / scale,
    y: camera.y + dy / camera.scale - dy / scale,
    scale,
  };
}

export function elementAt(camera: Camera, px: number, py: number, pane: Extent): { row: number; column: number } {
  return {
    row: Math.floor(camera.y + (py - pane.height / 2) / camera.scale),
    column: Math.floor(camera.x + (px - pane.width / 2) / camera.scale),
  };
}

/** Where the upper left corner of an element lies in the pane. */
export function placeOfElement(camera: Camera, row: number, column: number, pane: Extent): { px: number; py: number } {
  return {
    px: (column - camera.x) * camera.scale + pane.width / 2,
    py: (row - camera.y) * camera.scale + pane.height / 2,
  };
}
