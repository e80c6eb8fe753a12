/// The usual file extensions of common media types.
enum MIMETypes {
    /// The extension for a media type.
    ///
    /// - Parameter contentType: a `Content-Type` value; its parameters are ignored.
    /// - Returns: the extension without the dot; nil for unknown types and unspecific ones such as
    ///   `application/octet-stream`.
    static func fileExtension(for contentType: String) -> String? {
        let type = contentType.prefix { $0 != ";" && $0 != "," }.filter { $0 != " " && $0 != "\t" }.lowercased()
        return table[type]
    }

    private static let table: [String: String] = [
        "application/epub+zip": "epub", "application/gzip": "gz", "application/java-archive": "jar",
        "application/javascript": "js", "application/json": "json", "application/ld+json": "jsonld",
        "application/manifest+json": "webmanifest", "application/metalink4+xml": "meta4", "application/msword": "doc",
        "application/ogg": "ogx", "application/pdf": "pdf", "application/pgp-signature": "sig",
        "application/postscript": "ps", "application/rtf": "rtf", "application/sql": "sql",
        "application/vnd.android.package-archive": "apk", "application/vnd.apple.mpegurl": "m3u8",
        "application/vnd.debian.binary-package": "deb", "application/vnd.ms-excel": "xls",
        "application/vnd.ms-powerpoint": "ppt", "application/vnd.oasis.opendocument.spreadsheet": "ods",
        "application/vnd.oasis.opendocument.text": "odt",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.rar": "rar", "application/wasm": "wasm", "application/x-7z-compressed": "7z",
        "application/x-apple-diskimage": "dmg", "application/x-bittorrent": "torrent", "application/x-bzip2": "bz2",
        "application/x-cpio": "cpio", "application/x-debian-package": "deb", "application/x-gzip": "gz",
        "application/x-httpd-php": "php", "application/x-iso9660-image": "iso", "application/x-lzip": "lz",
        "application/x-mpegurl": "m3u8", "application/x-rar-compressed": "rar",
        "application/x-redhat-package-manager": "rpm", "application/x-rpm": "rpm", "application/x-sh": "sh",
        "application/x-sqlite3": "sqlite", "application/x-tar": "tar", "application/x-xz": "xz",
        "application/x-zip-compressed": "zip", "application/xhtml+xml": "xhtml", "application/xml": "xml",
        "application/yaml": "yaml", "application/zip": "zip", "application/zstd": "zst", "audio/aac": "aac",
        "audio/flac": "flac", "audio/midi": "mid", "audio/mp4": "m4a", "audio/mpeg": "mp3", "audio/ogg": "ogg",
        "audio/opus": "opus", "audio/wav": "wav", "audio/webm": "weba", "audio/x-wav": "wav", "font/otf": "otf",
        "font/ttf": "ttf", "font/woff": "woff", "font/woff2": "woff2", "image/apng": "apng", "image/avif": "avif",
        "image/bmp": "bmp", "image/gif": "gif", "image/heic": "heic", "image/jpeg": "jpg", "image/jxl": "jxl",
        "image/png": "png", "image/svg+xml": "svg", "image/tiff": "tiff", "image/vnd.microsoft.icon": "ico",
        "image/webp": "webp", "image/x-icon": "ico", "text/calendar": "ics", "text/css": "css", "text/csv": "csv",
        "text/html": "html", "text/javascript": "js", "text/markdown": "md", "text/plain": "txt",
        "text/tab-separated-values": "tsv", "text/vcard": "vcf", "text/xml": "xml", "text/yaml": "yaml",
        "video/mp2t": "ts", "video/mp4": "mp4", "video/mpeg": "mpg", "video/ogg": "ogv", "video/quicktime": "mov",
        "video/webm": "webm", "video/x-flv": "flv", "video/x-matroska": "mkv", "video/x-msvideo": "avi",
    ]
}
