import { Param, Tool, ToolContext, Toolset } from 'toolwright';
import { Library } from './library.js';

/** The library, for a model. Nothing here knows of MCP. */
@Toolset()
export class LibraryTools {
  constructor(private readonly library: Library) {}

  @Tool({
    description: 'Find books by words of their title or author',
    annotations: { title: 'Search the shelf', readOnly: true, openWorld: false },
  })
  searchBooks(@Param('Words, e.g. Eliot') words: string) {
    return this.library.search(words).map(({ isbn, title, author }) => ({ isbn, title, author }));
  }

  @Tool({ description: 'Borrow a book', approval: true, annotations: { title: 'Borrow a book' } })
  borrowBook(@Param('ISBN, as the search gives it') isbn: string, context: ToolContext) {
    const { title, borrowedBy } = this.library.borrow(isbn, String(context.data.reader));
    context.logger.info('A book was lent', { isbn });
    return `${title} is lent to ${borrowedBy}.`;
  }

  @Tool({ description: 'Check that every book is where it should be', annotations: { readOnly: true } })
  async *takeStock() {
    const books = this.library.all();
    for (const [position, { title }] of books.entries()) {
      yield { progress: position + 1, total: books.length, message: title };
    }
    return {
      content: [
        { type: 'text' as const, content: `${books.length} books` },
        {
          type: 'file' as const,
          filename: 'stock.csv',
          mimeType: 'text/csv',
          data: Buffer.from(books.map(({ isbn, title }) => `${isbn},${title}`).join('\n')).toString('base64'),
        },
      ],
    };
  }
}
