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
  { path: "/approvals", tag: "page-approvals", load: () => import("./pages/approvals"), name: "page.approvals", group: "top", key: "a", tab: true, needs: "exec.approval.list" },
  { path: "/tools", tag: "page-tools", load: () => import("./pages/tools"), name: "page.tools", group: "agent", key: "t", needs: "tools.policy" },
  { path: "/trace/:id?", tag: "page-trace", load: () => import("./pages/trace"), name: "page.trace", group: "agent", key: "r", needs: "trace.list" },
  { path: "/channels", tag: "page-channels", load: () => import("./pages/channels"), name: "page.channels", group: "house", key: "h", needs: "channels.status" },
  { path: "/devices", tag: "page-devices", load: () => import("./pages/devices"), name: "page.devices", group: "house", key: "d", needs: "device.pair.list" },
  { path: "/models", tag: "page-models", load: () => import("./pages/models"), name: "page.models", group: "house", key: "o", needs: "models.authStatus" },
  { path: "/usage", tag: "page-usage", load: () => import("./pages/usage"), name: "page.usage", group: "house", key: "u", needs: "usage.report" },
  { path: "/config/:section?", tag: "page-config", load: () => import("./pages/config"), name: "page.config", group: "house", key: ",", needs: "config.schema" },
  { path: "/security", tag: "page-security", load: () => import("./pages/security"), name: "page.security", group: "house", key: "x", needs: "security.audit" },
  { path: "/doctor", tag: "page-doctor", load: () => import("./pages/doctor"), name: "page.doctor", group: "house", key: "e", needs: "doctor.examine" },
  { path: "/logs", tag: "page-logs", load: () => import("./pages/logs"), name: "page.logs", group: "house", key: "l", needs: "logs.tail" },
  { path: "/debug", tag: "page-debug", load: () => import("./pages/debug"), name: "page.debug", group: "house", key: "b" },
];

/** The page for `/` and for a path that no page has. */
export const HOME = "/inbox";
