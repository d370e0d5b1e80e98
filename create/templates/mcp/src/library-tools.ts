import { RetryToolCall, Tool, Toolset } from 'toolwright';

interface Book {
  readonly isbn: string;
  readonly title: string;
  readonly author: string;
  borrowed: boolean;
}

const BOOKS: readonly Book[] = [
  { isbn: '978-0-14-144116-8', title: 'Middlemarch', author: 'George Eliot', borrowed: false },
  { isbn: '978-0-14-143951-8', title: 'Pride and Prejudice', author: 'Jane Austen', borrowed: false },
];

@Toolset()
export class LibraryTools {
  /**
   * Find books by words of their title or author
   * @param words Words to look for, e.g. Austen
   */
  @Tool({
    annotations: { title: 'Search the library', readOnly: true, destructive: false, openWorld: false },
  })
  searchBooks(words: string): Book[] {
    const wanted = words.toLowerCase();
    return BOOKS.filter(({ title, author }) => `${title} ${author}`.toLowerCase().includes(wanted));
  }

  /**
   * Borrow a book
   * @param isbn ISBN of the book, as the search returns it
   */
  @Tool({
    approval: true,
    annotations: { title: 'Borrow a book', readOnly: false, destructive: false, openWorld: false },
  })
  borrowBook(isbn: string): string {
    const book = BOOKS.find((candidate) => candidate.isbn === isbn);
    if (book === undefined) throw new RetryToolCall(`There is no book ${isbn}; search for it first.`);
    if (book.borrowed) throw new RetryToolCall(`${book.title} is borrowed already.`);
    book.borrowed = true;
    return `You have borrowed ${book.title}.`;
  }
}
