import { ToolContext, type ToolResult, userResult } from 'toolwright';
import { Param, Tool, Toolset } from 'toolwright/decorators';
import { NoteFolder } from '../services/note-folder.js';
import { searchNotes } from '../services/search-notes.js';
import { asList, counted } from './as-list.js';

const NAME = 'Name of the note, e.g. trip-to-lisbon';

/** The user's notes. */
@Toolset()
export class NotesTools {
  constructor(private readonly notes: NoteFolder) {}

  @Tool({ description: 'List the names of all notes', annotations: { readOnly: true } })
  listNotes(): string {
    const names = this.notes.names();
    return names.length > 0 ? asList(counted(names.length, 'note'), names) : 'There are no notes.';
  }

  @Tool({
    description: 'Search the notes. Tells which notes mention the words, and where.',
    annotations: { readOnly: true },
  })
  async searchNotes(
    @Param({ description: 'Words to look for in the notes', minLength: 1, maxLength: 200 }) query: string,
    context: ToolContext,
  ): Promise<string> {
    const names = this.notes.names();
    context.progress(`reading ${names.length} notes`);
    const hits = searchNotes(await Promise.all(names.map((name) => this.notes.read(name))), query);
    if (hits.length === 0) return `No note mentions '${query}'.`;
    const found = hits.map(({ name, lines }) => `${name}: ${lines.join(' / ')}`);
    return asList(counted(hits.length, 'note'), found);
  }

  @Tool({ description: 'Read the whole text of one note', annotations: { readOnly: true } })
  async readNote(@Param({ description: NAME, maxLength: 100 }) note: string): Promise<string> {
    return (await this.notes.read(note)).text;
  }

  @Tool({ description: 'Write a new note', sequential: true })
  async addNote(
    @Param({ description: 'Title of the new note', minLength: 1, maxLength: 80, pattern: '^[^\\r\\n]+$' })
    title: string,
    @Param({ description: 'Text of the new note, in Markdown', minLength: 1, maxLength: 20_000 })
    text: string,
    @Param({ description: 'Tags', items: () => String, maxItems: 10, required: false }) tags:
      | string[]
      | undefined,
    context: ToolContext,
  ): Promise<ToolResult> {
    const { name } = await this.notes.add({
      title,
      text,
      tags: tags ?? [],
      author: String(context.data.author),
    });
    return userResult(`Wrote the note ${name}.`);
  }
}
