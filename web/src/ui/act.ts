/** Something asked for by a person: its refusal is said in the gateway's own words. */
import { gateway } from "../lib/house";
import { Refused, type Dict } from "../lib/wire";
import { t } from "../lib/words";
import { toast } from "./say";

/** What the gateway answered, or null where it refused. */
export async function tried(method: string, params: Dict, done = ""): Promise<Dict | null> {
  try {
    const got = await gateway.call(method, params);
    if (done) toast(done);
    return got;
  } catch (fault) {
    if (!(fault instanceof Refused)) throw fault;
    toast(fault.code === "OFFLINE" || fault.code === "TIMEOUT" ? t("state.unreached") : fault.message);
    return null;
  }
}
