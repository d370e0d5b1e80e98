import { Public, Tool, ToolContext, Toolset } from 'toolwright';
import { BookCard } from './book-card.js';
import { type Book, Library } from './library.js';

/** The tools of the library. Everybody may search; only signed-in readers may borrow. */
@Public()
@Toolset()
export class LibraryTools {
  constructor(private readonly library: Library) {}

  /**
   * Find books by words of their title or author
   * @param words Words, e.g. Eliot
   */
  @Tool({ annotations: { title: 'Search the shelf', readOnly: true, openWorld: false } })
  searchBooks(words: string) {
    return this.library.search(words).map(({ isbn, title, author }) => ({ isbn, title, author }));
  }

  /**
   * Show a book, with who has it
   * @param isbn ISBN, as the search gives it
   */
  @Tool({ ui: BookCard, annotations: { title: 'Show a book', readOnly: true, openWorld: false } })
  showBook(isbn: string): Book {
    return this.library.find(isbn);
  }

  /**
   * Borrow a book
   * @param isbn ISBN, as the search gives it
   */
  @Tool({
    approval: true,
    scopes: ['books:borrow'],
    annotations: { title: 'Borrow a book', destructive: true },
  })
  borrowBook(isbn: string, context: ToolContext) {
    const { title, borrowedBy } = this.library.borrow(isbn, String(context.data.reader));
    context.logger.info('A book was lent', { isbn });
    return `${title} is lent to ${borrowedBy}.`;
  }

  /** Check that every book is where it should be */
  @Tool({ annotations: { readOnly: true } })
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
