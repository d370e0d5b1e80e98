import { Tool, Toolset } from '#toolwright';
import { AddDto, CreateOrderDto, SearchDto } from './dtos.js';

/** The workloads with class-validator classes as arguments. */
@Toolset({ prefix: 'dto' })
export class DtoTools {
  @Tool('Add two numbers')
  async add({ a, b }: AddDto) {
    return a + b;
  }

  @Tool('Search the invoices')
  async search({ query, mode, limit, tags }: SearchDto) {
    return `${mode} ${limit} ${tags?.length ?? 0} ${query}`;
  }

  @Tool('Create an order')
  async createOrder({ customer, items, labels }: CreateOrderDto) {
    return `${items.length} items for ${customer.address.city} by ${labels.channel}`;
  }
}
