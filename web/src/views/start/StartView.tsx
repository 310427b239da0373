// The first page: what to compare, and what was compared before.
export function StartView() {
  return <main class="start"><h1>tdbg</h1></main>;
}
