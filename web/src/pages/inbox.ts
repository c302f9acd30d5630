import { html } from "lit";
import { Page } from "../app/page";
import { t } from "../lib/words";
class Inbox extends Page { override render() { return html`${this.head(t("page.inbox"))}`; } }
customElements.define("page-inbox", Inbox);
