// What the build of agent-chat-ui takes for the answer of a font service, which a machine may not reach (Next's own switch for tests).
const FACE = "@font-face { font-family: 'Inter'; font-style: normal; font-weight: 100 900; src: url(https://fonts.gstatic.com/inter.woff2) format('woff2'); }";

module.exports = new Proxy({}, { get: (_, url) => (String(url).startsWith("https://fonts.googleapis.com/") ? FACE : undefined) });
