// Parts of the page that are not needed for its first sight: their scripts are fetched when there is time, or
// when they are wanted. Until they are there, nothing stands in their place: it is a matter of milliseconds.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

const AFTER_FIRST_SIGHT = 1000; // milliseconds

export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let part: ComponentType<Props> | null = null;
  const fetched = () => load().then((loaded) => (part = loaded));
  setTimeout(() => requestIdleCallback(() => void fetched()), AFTER_FIRST_SIGHT);
  return function Later(props: Props) {
    const [Part, setPart] = useState(() => part);
    useEffect(() => {
      if (!Part) void fetched().then((loaded) => setPart(() => loaded));
    }, []);
    return Part && <Part {...props} />;
  };
}
