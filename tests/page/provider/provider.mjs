/** A real OpenID provider (oidc-provider from npm), whose users have the name that they log in with; operators are in the group `ops`. */

import Provider from "oidc-provider";

const [port, home] = process.argv.slice(2);

/** Returns the claims of a user. */
const claims = (id) => ({ sub: id, email: id, email_verified: true, groups: id.startsWith("ops") ? ["ops"] : [] });

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "perihelion",
      client_secret: "the secret of the client",
      redirect_uris: [`${home}/v1/auth/oidc/callback`],
      post_logout_redirect_uris: [home],
      grant_types: ["authorization_code"],
      response_types: ["code"],
    },
  ],
  claims: { openid: ["sub", "groups"], email: ["email", "email_verified"] },
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  cookies: { keys: ["a key of this test alone"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => claims(id) }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
