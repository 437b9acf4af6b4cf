// Types that the scripts assume of pages: elements are HTML elements, and events carry these details.

interface ParentNode {
  querySelector<Tag extends keyof HTMLElementTagNameMap>(tag: Tag): HTMLElementTagNameMap[Tag];
  querySelector(selectors: string): HTMLElement;
  querySelectorAll(selectors: string): NodeListOf<HTMLElement>;
}

interface Element {
  closest<Tag extends keyof HTMLElementTagNameMap>(tag: Tag): HTMLElementTagNameMap[Tag];
  closest(selectors: string): HTMLElement;
}

interface EventTarget {
  closest(selectors: string): HTMLElement;
}

/** Milliseconds since 1970 of the server's clock. */
type ServerTime = number;

interface DocumentEventMap {
  "htmx:afterRequest": CustomEvent;
  "htmx:afterSettle": CustomEvent;
  "htmx:afterSwap": CustomEvent;
  "htmx:beforeRequest": CustomEvent;
  "htmx:beforeSend": CustomEvent;
  "htmx:configRequest": CustomEvent;
  "htmx:load": CustomEvent;
  "clock:set": CustomEvent<ServerTime>;
  "switchgear:toast": CustomEvent<{ message: string }>;
  "switchgear:url-state": CustomEvent<{ name: string; value: string }>;
}
