/** Safe in a path, a header and a log as it is; 128 characters at most. */
const CONVERSATION_ID = /^[A-Za-z0-9][A-Za-z0-9._~:@-]{0,127}$/;

/** Whether a value can be the id of a conversation or of a turn. */
export function isConversationId(value: unknown): value is string {
  return typeof value === 'string' && CONVERSATION_ID.test(value);
}
