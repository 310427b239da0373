// How far something has come; without a total, that it goes on.
export function Progress({ label, share }: { label: string; share: number | null }) {
  return <progress class="progress" aria-label={label} {...(share === null ? {} : { value: share, max: 1 })} />;
}
