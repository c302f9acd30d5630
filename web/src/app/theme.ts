/** Light, dark, or what the system says. */
export type Theme = "light" | "dark" | "system";

const KEY = "garra.theme";

export function theme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function wear(theme: Theme, keep = false): void {
  if (keep) localStorage.setItem(KEY, theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
