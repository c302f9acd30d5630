/** `${styled({ width: "40%" })}` in a tag: sets styles of the element itself, which the page's content policy allows. */
import { noChange, nothing } from "lit";
import { directive, Directive, type ElementPart, type PartInfo, PartType } from "lit/directive.js";

class Styled extends Directive {
  constructor(info: PartInfo) {
    super(info);
    if (info.type !== PartType.ELEMENT) throw new Error("styled() stands in a tag, not in an attribute");
  }

  override render(_styles: Record<string, string>): unknown {
    return nothing;
  }

  override update(part: ElementPart, [styles]: [Record<string, string>]): unknown {
    Object.assign((part.element as HTMLElement).style, styles);
    return noChange;
  }
}

export const styled = directive(Styled);
