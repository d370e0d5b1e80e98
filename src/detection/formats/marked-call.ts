import type { DraftCall } from '../draft-call.js';
import type { TextCursor } from '../text-cursor.js';

/** The call of a name that was read, with the JSON object that stands here as its arguments. */
export function markedCall(cursor: TextCursor, name: string): DraftCall | undefined {
  cursor.space();
  if (cursor.peek() !== '{') return undefined;
  const start = cursor.at;
  const json = cursor.json({ relaxed: true });
  if (json === undefined) return undefined;
  // No strict JSON goes on as raw text: mending it is the read step's, which records it.
  const raw = cursor.text.slice(start, cursor.at);
  return { name, arguments: json.members === undefined ? (json.value as DraftCall['arguments']) : raw };
}
