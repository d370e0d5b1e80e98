/** Removes the oldest entry if there are more than this many. */
export function forgetOldest(
  entries: Pick<Map<unknown, unknown> | Set<unknown>, 'size' | 'keys' | 'delete'>,
  most: number,
): void {
  const [oldest] = entries.keys();
  if (entries.size > most) entries.delete(oldest);
}
