/** The model of the service, and those on its machine; only operators are told. */

import { json } from "./http.ts";

export interface LocalModel {
  server: string;
  url: string;
  model: string;
}

export const models = {
  /** Asks the model for one word; the problem is why it gave none. */
  check: () => json<{ answers: boolean; problem: string | null }>("v1/fleet/check-model", {}),
  local: async () => (await json<{ found: LocalModel[] }>("v1/fleet/local-models")).found,
};
