// What the explorer's page needs of its parquet reader, and no more: footers, rows, and the one codec that releases are written with.
import { decompress } from "fzstd";
import { parquetMetadataAsync, parquetRead } from "hyparquet";

const compressors = { ZSTD: (bytes, length) => decompress(bytes, new Uint8Array(length)) };

export const footer = (file) => parquetMetadataAsync(file, { geoparquet: false });
export const read = (options) => parquetRead({ ...options, compressors });
