import { ToolContext, type ToolResult, userResult } from 'toolwright';
import { Tool, Toolset } from 'toolwright/decorators';
import { NoteFolder } from '../services/note-folder.js';
import { searchNotes } from '../services/search-notes.js';
import { asList, counted } from './as-list.js';

/** The user's notes. */
@Toolset()
export class NotesTools {
  constructor(private readonly notes: NoteFolder) {}

  /** List the names of all notes */
  @Tool({ annotations: { readOnly: true } })
  listNotes(): string {
    const names = this.notes.names();
    return names.length > 0 ? asList(counted(names.length, 'note'), names) : 'There are no notes.';
  }

  /**
   * Search the notes. Tells which notes mention the words, and where.
   * @param query Words to look for in the notes @minLength 1 @maxLength 200
   */
  @Tool({ annotations: { readOnly: true } })
  async searchNotes(query: string, context: ToolContext): Promise<string> {
    const names = this.notes.names();
    context.progress(`reading ${names.length} notes`);
    const hits = searchNotes(await Promise.all(names.map((name) => this.notes.read(name))), query);
    if (hits.length === 0) return `No note mentions '${query}'.`;
    const found = hits.map(({ name, lines }) => `${name}: ${lines.join(' / ')}`);
    return asList(counted(hits.length, 'note'), found);
  }

  /**
   * Read the whole text of one note
   * @param note Name of the note, e.g. trip-to-lisbon @maxLength 100
   */
  @Tool({ annotations: { readOnly: true } })
  async readNote(note: string): Promise<string> {
    return (await this.notes.read(note)).text;
  }

  /**
   * Write a new note
   * @param title Title of the new note @minLength 1 @maxLength 80 @pattern ^[^\r\n]+$
   * @param text Text of the new note, in Markdown @minLength 1 @maxLength 20000
   * @param tags Tags @maxItems 10
   */
  @Tool({ sequential: true })
  async addNote(
    title: string,
    text: string,
    tags: string[] | undefined,
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
