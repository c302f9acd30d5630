/** Begins: how it looks, what it speaks, then the frame. */
import "./tokens.css";
import "./base.css";
import { theme, wear } from "./app/theme";
import { choice, gateway } from "./lib/house";
import { speak, wanted } from "./lib/words";

wear(theme());
if (!choice.proposed && !choice.leaves) gateway.start();
void speak(wanted()).then(() => import("./app/shell"));
