import { directUses, type MappedRoom, mappedRooms, PURPOSES } from './room-map.js';

/** The page that shows the rooms. */
export const PAGE = 'docs/architecture.md';

/** What the page's generated parts say now, by their names. */
export function generatedParts(): Readonly<Record<string, string>> {
  const rooms = mappedRooms();
  return { drawing: drawingOf(rooms), rooms: tableOf(rooms), doors: doorsOf(rooms) };
}

/** The page with its generated parts as they are now; what stands around them is written by hand. */
export function updatedPage(page: string): string {
  return Object.entries(generatedParts()).reduce((text, [name, part]) => {
    const place = new RegExp(`(<!-- ${name}: npm run map -->\n)[\\s\\S]*?(<!-- end -->)`);
    if (!place.test(text)) throw new Error(`${PAGE} has no place for ${name}`);
    return text.replace(place, (_all, begin: string, end: string) => `${begin}\n${part}\n\n${end}`);
  }, page);
}

/** Upper rooms stand above, and arrows lead to what a room needs directly. */
function drawingOf(rooms: readonly MappedRoom[]): string {
  const lines = rooms.toReversed().flatMap((room) => {
    const node = `  ${idOf(room.name)}[${room.name}]`;
    return [node, ...directUses(room, rooms).map((used) => `  ${idOf(room.name)} --> ${idOf(used)}`)];
  });
  return ['```mermaid', 'flowchart TD', ...lines, '```'].join('\n');
}

function tableOf(rooms: readonly MappedRoom[]): string {
  const rows = rooms.map(
    ({ name, rank, uses, usedBy }) =>
      `| \`${name}\` | ${rank} | ${PURPOSES[name] ?? ''} | ${uses.join(', ') || '–'} | ${usedBy.join(', ') || 'users'} |`,
  );
  return [
    '| room | rank | what it is for | uses | used by |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

/** The files through which rooms are entered, and from where. */
function doorsOf(rooms: readonly MappedRoom[]): string {
  const rows = rooms
    .filter(({ offers }) => offers.length > 0)
    .flatMap(({ name, offers }) => {
      const files = [...Map.groupBy(offers, ({ path }) => path)].sort(([one], [other]) =>
        one < other ? -1 : 1,
      );
      return files.map(([path, names], index) => {
        const users = [...new Set(names.flatMap(({ to }) => to))].sort();
        return `| ${index === 0 ? `\`${name}\`` : ''} | \`${path.replace(/^src\//, '')}\` | ${users.join(', ')} |`;
      });
    });
  return ['| room | file | imported by |', '| --- | --- | --- |', ...rows].join('\n');
}

function idOf(name: string): string {
  return name.replaceAll('/', '_');
}
