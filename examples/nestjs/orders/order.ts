/** An order as the database has it. */
export interface Order {
  readonly id: number;
  readonly userId: string;
  readonly item: string;
  readonly quantity: number;
  readonly status: 'open' | 'shipped' | 'cancelled';
}
