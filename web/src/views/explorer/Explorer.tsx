// What one input holds: its tensors with their statistics.
import type { Comparison, ExploreResult } from "../../model";
import { pairAddress } from "../../router";

export interface ExplorerProps {
  comparison: Comparison;
  result: ExploreResult;
  /** The tensor that is open; null none. */
  index: number | null;
}

export function Explorer({ comparison, result }: ExplorerProps) {
  return (
    <ul>
      {result.tensors.map((tensor, index) => (
        <li key={index}><a href={pairAddress(comparison.id, index)}>{tensor.name}</a></li>
      ))}
    </ul>
  );
}
