/** Light or dark: the system's choice until the reader chooses. */

import { computed, signal } from "@preact/signals";

type Theme = "light" | "dark" | "system";

const KEY = "perihelion-theme";
const NEXT: { [theme in Theme]: Theme } = { system: "light", light: "dark", dark: "system" };

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

export const theme = signal<Theme>(stored());

const system = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(system.matches);
system.addEventListener("change", () => {
  isSystemDark.value = system.matches;
});

/** Whether the page is dark now. */
export const isDark = computed(() => (theme.value === "system" ? isSystemDark.value : theme.value === "dark"));

export function applyTheme() {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function nextTheme() {
  theme.value = NEXT[theme.value];
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // A browser that keeps nothing still shows the theme.
  }
  applyTheme();
}
