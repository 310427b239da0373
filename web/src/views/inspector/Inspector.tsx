// One pair (or one tensor of an exploration), looked at closely.
import type { Comparison, Pair, TensorStats } from "../../model";

export interface InspectorProps {
  comparison: Comparison;
  /** Index of the pair in the result; in an exploration that of the tensor. */
  index: number;
  pair: Pair | null;
  tensor: TensorStats | null;
}

export function Inspector({ index, pair, tensor }: InspectorProps) {
  return (
    <section class="inspector" aria-label="Inspector">
      <h2 class="mono">{pair?.name ?? tensor?.name ?? index}</h2>
    </section>
  );
}
