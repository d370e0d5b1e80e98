import * as cv from 'class-validator';

/** A decorator, the schema of a property with only this decorator, and whether class-validator must also run. */
export interface DecoratorRow {
  readonly name: string;
  readonly decorate: PropertyDecorator;
  readonly designType?: unknown;
  readonly schema: object;
  readonly calls: boolean;
  readonly optional?: boolean;
}

enum Size {
  Small = 1,
  Large = 2,
}

const exact = (
  name: string,
  decorate: PropertyDecorator,
  schema: object,
  designType?: unknown,
): DecoratorRow => ({
  name,
  decorate,
  schema,
  designType,
  calls: false,
});

const weak = (
  name: string,
  decorate: PropertyDecorator,
  schema: object,
  designType?: unknown,
): DecoratorRow => ({
  ...exact(name, decorate, schema, designType),
  calls: true,
});

const text = (more: object = {}) => ({ type: 'string', ...more });
const texts = { type: 'array', items: { type: 'string' } };

const HEX = '[0-9a-fA-F]';
const ISO = '^[+-]?\\d{4}(-?(\\d{2}(-?\\d{2})?|W\\d{2}(-?\\d)?|\\d{3}))?([T\\s]\\S*)?$';
const ADDRESS = '^[0-9a-fA-F:.]+(%[0-9a-zA-Z.]+)?$';

/** Written by hand from the documentation and the source of class-validator 0.15 and validator 13. */
export const DECORATOR_ROWS: readonly DecoratorRow[] = [
  exact('IsString', cv.IsString(), text()),
  exact('IsBoolean', cv.IsBoolean(), { type: 'boolean' }),
  exact('IsInt', cv.IsInt(), { type: 'integer' }, Number),
  exact('IsNumber', cv.IsNumber(), { type: 'number' }),
  exact('IsNumber', cv.IsNumber({ maxDecimalPlaces: 0 }), { type: 'integer' }),
  weak('IsNumber', cv.IsNumber({ maxDecimalPlaces: 2 }), { type: 'number' }),
  exact('IsDate', cv.IsDate(), text({ format: 'date-time' })),
  exact('IsObject', cv.IsObject(), { type: 'object' }),
  exact('IsEnum', cv.IsEnum(Size), { type: 'number', enum: [1, 2] }),
  exact('IsEnum', cv.IsEnum(['a', 'b']), text({ enum: ['a', 'b'] })),
  exact('IsIn', cv.IsIn(['asc', 'desc']), text({ enum: ['asc', 'desc'] })),
  exact('IsIn', cv.IsIn([1, 'one', null]), { enum: [1, 'one', null] }),
  {
    ...exact('IsNotIn', cv.IsNotIn(['root', 'admin']), text({ not: { enum: ['root', 'admin'] } }), String),
    optional: true,
  },
  exact('Equals', cv.Equals('yes'), text({ const: 'yes' })),
  { ...exact('NotEquals', cv.NotEquals(0), { type: 'number', not: { const: 0 } }, Number), optional: true },
  { ...exact('IsEmpty', cv.IsEmpty(), { type: ['string', 'null'], enum: ['', null] }), optional: true },
  exact('IsNotEmpty', cv.IsNotEmpty(), text({ minLength: 1 }), String),
  exact('IsNotEmpty', cv.IsNotEmpty(), { type: 'number' }, Number),
  exact('IsDefined', cv.IsDefined(), text(), String),
  { ...exact('IsOptional', cv.IsOptional(), text(), String), optional: true },
  { ...exact('Allow', cv.Allow(), text(), String), optional: true },
  {
    ...weak(
      'ValidateIf',
      cv.ValidateIf(() => true),
      { type: ['string', 'null'] },
      String,
    ),
    optional: true,
  },
  weak('Validate', cv.Validate(class Custom {}), text(), String),
  weak('ValidateBy', cv.ValidateBy({ name: 'own', validator: { validate: () => true } }), text(), String),
  weak('ValidatePromise', cv.ValidatePromise(), text(), String),
  exact('IsNotEmptyObject', cv.IsNotEmptyObject(), { type: 'object', minProperties: 1 }),
  weak('IsNotEmptyObject', cv.IsNotEmptyObject({ nullable: false }), { type: 'object', minProperties: 1 }),
  weak('IsInstance', cv.IsInstance(Date), text({ format: 'date-time' }), Date),
  exact('Min', cv.Min(1), { type: 'number', minimum: 1 }),
  exact('Max', cv.Max(9.5), { type: 'number', maximum: 9.5 }),
  exact('IsPositive', cv.IsPositive(), { type: 'number', exclusiveMinimum: 0 }),
  exact('IsNegative', cv.IsNegative(), { type: 'number', exclusiveMaximum: 0 }),
  exact('IsDivisibleBy', cv.IsDivisibleBy(5), { type: 'number', multipleOf: 5 }),
  weak('MinDate', cv.MinDate(new Date(0)), text({ format: 'date-time' })),
  weak(
    'MaxDate',
    cv.MaxDate(() => new Date(0)),
    text({ format: 'date-time' }),
  ),
  weak('IsLatitude', cv.IsLatitude(), { type: 'number', minimum: -90, maximum: 90 }, Number),
  weak('IsLongitude', cv.IsLongitude(), { type: 'number', minimum: -180, maximum: 180 }, Number),
  weak('IsLatLong', cv.IsLatLong(), text({ pattern: ',' })),
  exact('Length', cv.Length(2, 5), text({ minLength: 2, maxLength: 5 })),
  exact('MinLength', cv.MinLength(2), text({ minLength: 2 })),
  exact('MaxLength', cv.MaxLength(5), text({ maxLength: 5 })),
  weak('IsByteLength', cv.IsByteLength(5, 8), text({ minLength: 2, maxLength: 8 })),
  exact('Matches', cv.Matches(/^[a-z]+$/), text({ pattern: '^[a-z]+$' })),
  exact('Matches', cv.Matches('^a|b$', 'i'), text({ pattern: '^[aA]|[bB]$' })),
  exact('Contains', cv.Contains('a.b'), text({ pattern: 'a\\.b' })),
  exact('NotContains', cv.NotContains(' '), text({ not: { pattern: ' ' } })),
  exact('IsAlpha', cv.IsAlpha(), text({ pattern: '^[a-zA-Z]+$' })),
  weak('IsAlpha', cv.IsAlpha('de-DE'), text()),
  exact('IsAlphanumeric', cv.IsAlphanumeric(), text({ pattern: '^[0-9a-zA-Z]+$' })),
  exact('IsAscii', cv.IsAscii(), text({ pattern: '^[\\x00-\\x7F]+$' })),
  exact('IsMultibyte', cv.IsMultibyte(), text({ pattern: '[^\\x00-\\x7F]' })),
  exact('IsSurrogatePair', cv.IsSurrogatePair(), text({ pattern: '[\\u{10000}-\\u{10FFFF}]' })),
  weak('IsLowercase', cv.IsLowercase(), text({ pattern: '^[^A-Z]*$' })),
  weak('IsUppercase', cv.IsUppercase(), text({ pattern: '^[^a-z]*$' })),
  exact('IsBooleanString', cv.IsBooleanString(), text({ enum: ['true', 'false', '1', '0'] })),
  exact('IsNumberString', cv.IsNumberString(), text({ pattern: '^[+-]?([0-9]*[.])?[0-9]+$' })),
  exact('IsNumberString', cv.IsNumberString({ no_symbols: true }), text({ pattern: '^[0-9]+$' })),
  weak('IsEmail', cv.IsEmail(), text({ format: 'email' })),
  weak('IsEmail', cv.IsEmail({ allow_display_name: true }), text()),
  weak('IsUrl', cv.IsUrl(), text({ pattern: '^[^\\s<>]*[.:][^\\s<>]*$' })),
  weak('IsUrl', cv.IsUrl({ require_tld: false }), text({ pattern: '^[^\\s<>]+$' })),
  weak(
    'IsUrl',
    cv.IsUrl({ require_protocol: true }),
    text({ pattern: '^[a-zA-Z][a-zA-Z0-9+.-]*:[^\\s<>]+$' }),
  ),
  weak('IsUUID', cv.IsUUID(), text({ format: 'uuid' })),
  weak('IsUUID', cv.IsUUID('4'), text({ format: 'uuid' })),
  weak('IsIP', cv.IsIP(), text({ pattern: ADDRESS })),
  exact('IsIP', cv.IsIP(4), text({ format: 'ipv4' })),
  weak('IsIP', cv.IsIP('6'), text({ pattern: ADDRESS })),
  weak('IsPort', cv.IsPort(), text({ pattern: '^[+-]?(0|[1-9]\\d{0,4})$' })),
  weak('IsMACAddress', cv.IsMACAddress(), text({ pattern: '^[0-9a-fA-F][0-9a-fA-F:.\\s-]+$' })),
  weak('IsISO8601', cv.IsISO8601(), text({ pattern: ISO })),
  weak('IsDateString', cv.IsDateString(), text({ pattern: ISO }), Date),
  exact(
    'IsRFC3339',
    cv.IsRFC3339(),
    text({
      pattern:
        '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[ Tt]([01]\\d|2[0-3]):[0-5]\\d:([0-5]\\d|60)(\\.\\d+)?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)$',
    }),
  ),
  exact('IsMilitaryTime', cv.IsMilitaryTime(), text({ pattern: '^([01]\\d|2[0-3]):?[0-5]\\d$' })),
  exact('IsHexadecimal', cv.IsHexadecimal(), text({ pattern: `^(0[xXhH])?${HEX}+$` })),
  exact('IsHexColor', cv.IsHexColor(), text({ pattern: `^#?(${HEX}{3}|${HEX}{4}|${HEX}{6}|${HEX}{8})$` })),
  weak('IsRgbColor', cv.IsRgbColor(), text({ pattern: '^rgba?\\(' })),
  weak('IsHSL', cv.IsHSL(), text()),
  exact('IsOctal', cv.IsOctal(), text({ pattern: '^(0[oO])?[0-7]+$' })),
  exact('IsMongoId', cv.IsMongoId(), text({ pattern: `^(0[xXhH]${HEX}{22}|${HEX}{24})$` })),
  exact('IsFirebasePushId', cv.IsFirebasePushId(), text({ pattern: '^[a-zA-Z0-9_-]{20}$' })),
  exact('IsHash', cv.IsHash('md5'), text({ pattern: '^[a-fA-F0-9]{32}$' })),
  exact('IsBase32', cv.IsBase32(), text({ pattern: '^(?=(.{8})+$)[A-Z2-7]+=*$' })),
  exact('IsBase58', cv.IsBase58(), text({ pattern: '^[A-HJ-NP-Za-km-z1-9]*$' })),
  exact('IsBase64', cv.IsBase64(), text({ pattern: '^(?=(.{4})*$)[A-Za-z0-9+/]*={0,2}$' })),
  weak('IsBase64', cv.IsBase64({ urlSafe: true }), text()),
  exact('IsJWT', cv.IsJWT(), text({ pattern: '^[A-Za-z0-9_-]*\\.[A-Za-z0-9_-]*\\.[A-Za-z0-9_-]*$' })),
  weak('IsSemVer', cv.IsSemVer(), text({ pattern: '^\\d+\\.\\d+\\.\\d+' })),
  weak('IsMimeType', cv.IsMimeType(), text({ pattern: '^[a-zA-Z]+/.+' })),
  weak('IsDataURI', cv.IsDataURI(), text({ pattern: 'data:' })),
  weak('IsMagnetURI', cv.IsMagnetURI(), text({ pattern: '^magnet:\\?' })),
  exact('IsEthereumAddress', cv.IsEthereumAddress(), text({ pattern: '^0[xX][0-9a-fA-F]{40}$' })),
  weak('IsBtcAddress', cv.IsBtcAddress(), text({ pattern: '^[a-zA-Z0-9]{26,62}$' })),
  weak('IsISO31661Alpha2', cv.IsISO31661Alpha2(), text({ maxLength: 2 })),
  weak('IsISO31661Alpha3', cv.IsISO31661Alpha3(), text({ maxLength: 3 })),
  weak('IsISO31661Numeric', cv.IsISO31661Numeric(), text({ pattern: '^\\d{3}$' })),
  weak('IsISO4217CurrencyCode', cv.IsISO4217CurrencyCode(), text({ maxLength: 3 })),
  weak('IsBIC', cv.IsBIC(), text({ pattern: '^[A-Za-z]{6}[A-Za-z0-9]{2}([A-Za-z0-9]{3})?$' })),
  weak('IsEAN', cv.IsEAN(), text({ pattern: '^(\\d{8}|\\d{13}|\\d{14})$' })),
  weak('IsISIN', cv.IsISIN(), text({ pattern: '^[A-Z]{2}[0-9A-Z]{9}\\d$' })),
  exact('IsISRC', cv.IsISRC(), text({ pattern: '^[A-Z]{2}[0-9A-Z]{3}\\d{7}$' })),
  weak('IsISSN', cv.IsISSN(), text({ pattern: '^\\d{4}-?\\d{3}[\\dxX]$' })),
  exact('ArrayMinSize', cv.ArrayMinSize(1), { ...texts, minItems: 1 }),
  exact('ArrayMaxSize', cv.ArrayMaxSize(3), { ...texts, maxItems: 3 }),
  exact('ArrayNotEmpty', cv.ArrayNotEmpty(), { ...texts, minItems: 1 }),
  weak('ArrayUnique', cv.ArrayUnique(), { ...texts, uniqueItems: true }),
  exact('ArrayContains', cv.ArrayContains(['a']), { ...texts, contains: { const: 'a' } }),
  exact('ArrayContains', cv.ArrayContains(['a', 'b']), {
    ...texts,
    allOf: [{ contains: { const: 'a' } }, { contains: { const: 'b' } }],
  }),
  exact('ArrayNotContains', cv.ArrayNotContains(['x']), { ...texts, not: { contains: { enum: ['x'] } } }),
  exact('IsArray', cv.IsArray(), texts),
  weak('IsCreditCard', cv.IsCreditCard(), text()),
  weak('IsCurrency', cv.IsCurrency(), text()),
  weak('IsDecimal', cv.IsDecimal(), text()),
  weak('IsFQDN', cv.IsFQDN(), text()),
  weak('IsFullWidth', cv.IsFullWidth(), text()),
  weak('IsHalfWidth', cv.IsHalfWidth(), text()),
  weak('IsVariableWidth', cv.IsVariableWidth(), text()),
  weak('IsIBAN', cv.IsIBAN(), text()),
  weak('IsISO6391', cv.IsISO6391(), text()),
  weak('IsIdentityCard', cv.IsIdentityCard('IT'), text()),
  weak('IsISBN', cv.IsISBN(), text()),
  weak('IsJSON', cv.IsJSON(), text()),
  weak('IsLocale', cv.IsLocale(), text()),
  weak('IsMobilePhone', cv.IsMobilePhone(), text()),
  weak('IsPassportNumber', cv.IsPassportNumber('DE'), text()),
  weak('IsPhoneNumber', cv.IsPhoneNumber(), text()),
  weak('IsPostalCode', cv.IsPostalCode('DE'), text()),
  weak('IsStrongPassword', cv.IsStrongPassword(), text()),
  weak('IsTaxId', cv.IsTaxId('en-US'), text()),
  weak('IsTimeZone', cv.IsTimeZone(), text()),
];
