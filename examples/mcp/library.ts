/** A book and who has it. */
export interface Book {
  readonly isbn: string;
  readonly title: string;
  readonly author: string;
  readonly borrowedBy?: string;
}

const BOOKS: readonly Book[] = [
  { isbn: '978-0-14-144116-8', title: 'Middlemarch', author: 'George Eliot' },
  { isbn: '978-0-14-043944-1', title: 'The Mill on the Floss', author: 'George Eliot' },
  { isbn: '978-0-14-143951-8', title: 'Pride and Prejudice', author: 'Jane Austen' },
  { isbn: '978-0-14-143979-2', title: 'Persuasion', author: 'Jane Austen' },
];

/** The books of a small library. */
export class Library {
  readonly #books = new Map(BOOKS.map((book) => [book.isbn, book]));

  search(words: string): readonly Book[] {
    const wanted = words.toLowerCase();
    return this.all().filter(({ title, author }) => `${title} ${author}`.toLowerCase().includes(wanted));
  }

  all(): readonly Book[] {
    return [...this.#books.values()];
  }

  find(isbn: string): Book {
    const book = this.#books.get(isbn);
    if (book === undefined) throw new Error(`There is no book ${isbn}; search for it first.`);
    return book;
  }

  borrow(isbn: string, reader: string): Book {
    const book = this.find(isbn);
    if (book.borrowedBy !== undefined) throw new Error(`${book.title} is lent to somebody.`);
    const lent = { ...book, borrowedBy: reader };
    this.#books.set(isbn, lent);
    return lent;
  }
}
