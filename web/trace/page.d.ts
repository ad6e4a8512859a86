/** Shows a trace within an element until the signal is aborted. */
export function showTrace(root: HTMLElement, data: unknown, parts: string[], signal?: AbortSignal): Promise<void>;
