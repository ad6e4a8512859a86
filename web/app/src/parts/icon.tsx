/** Icons of Lucide, each drawn from its shapes; what an icon means stands beside it or in its label. */

import {
  Activity, ArrowDown, ArrowUp, Ban, BookOpen, Bot, ChartColumn, Check, ChevronDown, ChevronRight, Circle, CircleAlert, CircleHelp, Copy, Database, Download, Ellipsis,
  FileText, GitBranch, Inbox, LoaderCircle, LogOut, MessageSquare, Monitor, Moon, PanelRight, Paperclip, Pencil, Play, Plus, RefreshCw, RotateCcw, Search, Settings, Share2, Square, Sun, ThumbsDown, ThumbsUp, Trash2, Users, Wrench, X,
} from "lucide";
import { h } from "preact";

const ICONS = {
  activity: Activity, "arrow-down": ArrowDown, "arrow-up": ArrowUp, ban: Ban, book: BookOpen, bot: Bot, bars: ChartColumn, check: Check, "chevron-down": ChevronDown, "chevron-right": ChevronRight,
  circle: Circle, alert: CircleAlert, help: CircleHelp, copy: Copy, database: Database, download: Download, more: Ellipsis, file: FileText, branch: GitBranch, inbox: Inbox, loader: LoaderCircle,
  logout: LogOut, message: MessageSquare, monitor: Monitor, moon: Moon, panel: PanelRight, clip: Paperclip, pencil: Pencil, play: Play, plus: Plus, refresh: RefreshCw, retry: RotateCcw, search: Search,
  settings: Settings, graph: Share2, stop: Square, sun: Sun, up: ThumbsUp, down: ThumbsDown, trash: Trash2, users: Users, wrench: Wrench, close: X,
} as const;

export type IconName = keyof typeof ICONS;

export function Icon({ name, class: look = "" }: { name: IconName; class?: string }) {
  return (
    <svg class={`icon ${look}`} viewBox="0 0 24 24" aria-hidden="true">
      {ICONS[name].map(([shape, attributes], index) => h(shape, { ...attributes, key: index }))}
    </svg>
  );
}
