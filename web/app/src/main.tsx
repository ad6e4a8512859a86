import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme } from "./parts/theme.ts";

applyTheme();
const page = document.getElementById("page");
if (page) {
  page.replaceChildren();
  render(<App />, page);
}
