import { Tool, Toolset } from 'toolwright';

@Toolset()
export class DeliveryTools {
  /** How many days a parcel takes. */
  @Tool()
  deliveryDays(postcode: string, weight: number): string {
    return `${Math.ceil(weight / 10) + postcode.length} days to ${postcode}`;
  }
}
