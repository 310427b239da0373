// From a value to a colour: the maps, the scales, and how a scale is chosen at first.
//
// Blue is negative, white is zero, orange is positive, deeper is larger: told apart by every kind of colour
// vision. NaN and infinities have colours that no finite value gets. The maps are tables, used by the shader
// as a texture and by the legend as a gradient, so that both show the same. A scale first bends the value
// (linear, symlog, log of the size), then spreads [low, high] over the map; with zero inside, zero is white.

export type ScaleKind = "linear" | "symlog" | "log";

export interface Scale {
  kind: ScaleKind;
  low: number;
  high: number;
}

type Rgb = readonly [number, number, number];

export const mapSize = 256;
export const nanColour: Rgb = [214, 24, 160];
export const infColour: Rgb = [0, 176, 130];

const blueToOrange: Rgb[] = [
  [8, 42, 92], [28, 92, 158], [92, 155, 210], [182, 212, 236], [248, 248, 246],
  [252, 212, 162], [235, 143, 48], [186, 88, 10], [102, 42, 2],
];

/** Below this share of the largest size a symlog scale is linear, and a log scale ends. */
const smallestShare = 1e-4;

function spread(stops: Rgb[]): Uint8Array {
  const table = new Uint8Array(mapSize * 4);
  for (let i = 0; i < mapSize; i++) {
    const place = (i / (mapSize - 1)) * (stops.length - 1);
    const at = Math.min(Math.floor(place), stops.length - 2);
    const from = stops[at] as Rgb;
    const to = stops[at + 1] as Rgb;
    for (const c of [0, 1, 2] as const) {
      table[i * 4 + c] = Math.round(from[c] + (to[c] - from[c]) * (place - at));
    }
    table[i * 4 + 3] = 255;
  }
  return table;
}

const middle = (blueToOrange.length - 1) / 2;
const diverging = spread(blueToOrange);
const positive = spread(blueToOrange.slice(middle));
const negative = spread(blueToOrange.slice(0, middle + 1));

/** A scale as the shader and the legend use it: bent limits, and the table that goes with their signs. */
export interface Ramp {
  kind: ScaleKind;
  low: number;
  high: number;
  knee: number; // where symlog turns from linear to logarithmic
  signed: boolean; // zero lies inside: each side is spread over its own half
  table: Uint8Array;
}

function bend(kind: ScaleKind, knee: number, value: number): number {
  if (kind === "symlog") return Math.sign(value) * Math.log1p(Math.abs(value) / knee);
  if (kind === "log") return Math.log(Math.max(Math.abs(value), knee));
  return value;
}

export function rampOf(scale: Scale): Ramp {
  const largest = Math.max(Math.abs(scale.low), Math.abs(scale.high)) || 1;
  if (scale.kind === "log") {
    const knee = scale.low > 0 ? scale.low : largest * smallestShare;
    return { kind: "log", low: Math.log(knee), high: Math.log(largest), knee, signed: false, table: positive };
  }
  const knee = largest * smallestShare;
  const signed = scale.low < 0 && scale.high > 0;
  const table = signed ? diverging : scale.high <= 0 && scale.low < 0 ? negative : positive;
  return {
    kind: scale.kind,
    low: bend(scale.kind, knee, scale.low),
    high: bend(scale.kind, knee, scale.high),
    knee,
    signed,
    table,
  };
}

/** Where on the map, 0 to 1, a finite value lies. The shader says the same in its own language. */
export function placeOf(ramp: Ramp, value: number): number {
  const bent = bend(ramp.kind, ramp.knee, value);
  const place = ramp.signed
    ? bent < 0 ? 0.5 - 0.5 * (bent / ramp.low) : 0.5 + 0.5 * (bent / ramp.high)
    : (bent - ramp.low) / (ramp.high - ramp.low || 1);
  return Math.min(1, Math.max(0, place));
}

export function colourOf(ramp: Ramp, value: number): Rgb {
  if (Number.isNaN(value)) return nanColour;
  if (!Number.isFinite(value)) return infColour;
  const i = Math.round(placeOf(ramp, value) * (mapSize - 1)) * 4;
  return [ramp.table[i] ?? 0, ramp.table[i + 1] ?? 0, ramp.table[i + 2] ?? 0];
}

export function css([r, g, b]: Rgb): string {
  return `rgb(${r}, ${g}, ${b})`;
}

export interface Spread {
  min: number;
  max: number;
  mean: number;
  std: number;
}

/** Four deviations around the mean, within what occurs: one outlier must not wash the picture out. Signed
 * values get the same depth on both sides. */
export function firstScale(sides: Spread[]): Scale {
  let low = Infinity;
  let high = -Infinity;
  for (const { min, max, mean, std } of sides) {
    low = Math.min(low, Math.max(min, mean - 4 * std));
    high = Math.max(high, Math.min(max, mean + 4 * std));
  }
  if (!Number.isFinite(low) || !Number.isFinite(high)) return { kind: "linear", low: 0, high: 1 };
  if (low < 0 && high > 0) {
    high = Math.max(-low, high);
    low = -high;
  }
  if (low === high) return low === 0 ? { kind: "linear", low: -1, high: 1 }
    : { kind: "linear", low: Math.min(low, 0), high: Math.max(high, 0) };
  return { kind: "linear", low, high };
}
