import { Injectable } from '@nestjs/common';
import { Tool } from 'toolwright';

const CUSTOMERS = [
  { id: 'cus_1', name: 'Ada Lovelace', email: 'ada@example.org' },
  { id: 'cus_2', name: 'Grace Hopper', email: 'grace@example.org' },
];

@Injectable()
export class CustomerTools {
  /**
   * Find customers by a part of their name
   * @param name A part of the name
   */
  @Tool({ annotations: { readOnly: true } })
  findCustomers(name: string, limit = 5) {
    const wanted = name.toLowerCase();
    return CUSTOMERS.filter((customer) => customer.name.toLowerCase().includes(wanted)).slice(0, limit);
  }
}
