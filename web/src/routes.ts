/** Every page: its path, its element, and where it stands. A new page is one line here and one file in pages/. */
import type { Word } from "./lib/words";

export interface Route {
  /** The pattern of its path, `:name` for a value, `:name?` for one that may be missing. */
  path: string;
  /** The element that `load` defines. */
  tag: string;
  load: () => Promise<unknown>;
  /** Its name in the side bar and the window's title. */
  name: Word;
  /** Where the side bar has it; absent: reached by links only. */
  group?: "top" | "agent" | "house";
  /** The second key after `g`. */
  key?: string;
  /** Whether a phone has a tab for it. */
  tab?: boolean;
  /** Shown only where the gateway knows this method. */
  needs?: string;
}

export const ROUTES: readonly Route[] = [
  { path: "/inbox", tag: "page-inbox", load: () => import("./pages/inbox"), name: "page.inbox", group: "top", key: "i", tab: true, needs: "messages.list" },
  { path: "/chat/:key?", tag: "page-chat", load: () => import("./pages/chat"), name: "page.chat", group: "top", key: "c", tab: true },
  { path: "/sessions", tag: "page-sessions", load: () => import("./pages/sessions"), name: "page.sessions", group: "agent", key: "s", needs: "sessions.list" },
  { path: "/agents/:id?", tag: "page-agents", load: () => import("./pages/agents"), name: "page.agents", group: "agent", key: "g", needs: "agents.files.list" },
  { path: "/memory", tag: "page-memory", load: () => import("./pages/memory"), name: "page.memory", group: "agent", key: "m", needs: "memory.search" },
  { path: "/models", tag: "page-models", load: () => import("./pages/models"), name: "page.models", group: "house", key: "o", needs: "models.authStatus" },
  { path: "/usage", tag: "page-usage", load: () => import("./pages/usage"), name: "page.usage", group: "house", key: "u", needs: "usage.report" },
];

/** The page for `/` and for a path that no page has. */
export const HOME = "/inbox";
