/** Paths to pages, by the browser's history, below the page's base. */
import { base } from "../lib/house";

export interface Where {
  /** Below the base, beginning with a slash. */
  path: string;
  query: URLSearchParams;
}

/** The values of a pattern like `/chat/:key?` in a path, decoded; null when it does not fit. */
export function fits(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/").filter(Boolean);
  const given = path.split("/").filter(Boolean);
  if (given.length > wanted.length) return null;
  const values: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const value = given[at];
    if (!part.startsWith(":")) {
      if (value !== part) return null;
    } else if (value !== undefined) {
      try {
        values[part.replace(/^:|\?$/g, "")] = decodeURIComponent(value);
      } catch {
        return null;
      }
    } else if (!part.endsWith("?")) {
      return null;
    }
  }
  return values;
}

export function here(): Where {
  const path = location.pathname.startsWith(base) ? location.pathname.slice(base.length - 1) : "/";
  return { path, query: new URLSearchParams(location.search) };
}

/** The address of a path below the base, for links. */
export function to(path: string): string {
  return base.slice(0, -1) + path;
}

const watchers = new Set<() => void>();

export function watchPlace(moved: () => void): () => void {
  watchers.add(moved);
  return () => watchers.delete(moved);
}

function tell(): void {
  for (const moved of [...watchers]) moved();
}

/** Go to a path below the base. */
export function go(path: string, how: { replace?: boolean } = {}): void {
  if (how.replace) history.replaceState(null, "", to(path));
  else history.pushState(null, "", to(path));
  tell();
}

/** From now on links within the page and the browser's buttons move it. */
export function listen(): void {
  addEventListener("popstate", tell);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.composedPath().find((each) => each instanceof HTMLAnchorElement) as HTMLAnchorElement | undefined;
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (!link.pathname.startsWith(base)) return;
    event.preventDefault();
    go(link.pathname.slice(base.length - 1) + link.search);
  });
}
