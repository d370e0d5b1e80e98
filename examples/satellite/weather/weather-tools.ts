import { Param, Tool, Toolset } from 'toolwright';
import { WeatherStation } from './weather-station.js';

/** What the satellite can do for the assistant. */
@Toolset()
export class WeatherTools {
  constructor(private readonly station: WeatherStation) {}

  @Tool({ description: 'Look up the weather of a city', annotations: { readOnly: true } })
  async lookupWeather(@Param('Name of the city, e.g. Lisbon') city: string, signal: AbortSignal) {
    const { celsius, sky } = await this.station.read(city, signal);
    return `${city} is ${celsius}°C and ${sky}.`;
  }

  @Tool({ description: 'List the cities that have a weather station', annotations: { readOnly: true } })
  listCities() {
    return this.station.cities().join(', ');
  }
}
