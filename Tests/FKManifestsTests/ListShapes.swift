import TestSupport
import Testing

@testable import FKManifests

/// Lists as other programs write them, each of the shape of a real one, with what is read of it.
struct ListShape: Sendable, CustomTestStringConvertible {
    /// The name of the list's file.
    var name: String
    /// Where such lists are found.
    var source: String
    var text: String
    var base: String?
    var form: Manifest.Form
    /// The names, empty for the one of the URL.
    var names: [String]
    var urls: [String]
    var sizes: [Int64?] = []
    var digests: [[Checksum.Algorithm]] = []
    var passedOver: [String: Int] = [:]

    var testDescription: String { "\(name) (\(source))" }
}

enum ListShapes {
    private static let sha256 = SampleDigest.sha256
    private static let md5 = SampleDigest.hex(.md5, "c")
    private static let sha512 = SampleDigest.hex(.sha512, "5")
    /// 32 bytes of zeros.
    private static let base64 = String(repeating: "A", count: 43) + "="

    static let all: [ListShape] = texts + checksums + tables + objects

    private static let texts: [ListShape] = [
        .init(
            name: "files.txt", source: "ENCODE",
            text: "\"https://h/metadata/?type=Experiment\"\nhttps://h/files/A/@@download/A.bed.gz\n",
            form: .urls, names: ["", ""],
            urls: ["https://h/metadata/?type=Experiment", "https://h/files/A/@@download/A.bed.gz"]),
        .init(
            name: "pasted.txt", source: "an array of a program", text: "\"https://h/a\",\n'https://h/b',\n",
            form: .urls, names: ["", ""], urls: ["https://h/a", "https://h/b"]),
        .init(
            name: "explicit.txt", source: "conda list --explicit --md5",
            text:
                "# platform: linux-64\n@EXPLICIT\nhttps://h/linux-64/a-1.conda#\(md5)\nhttps://h/b.conda#sha256:\(sha256)\n",
            form: .urls, names: ["", ""], urls: ["https://h/linux-64/a-1.conda", "https://h/b.conda"],
            digests: [[.md5], [.sha256]]),
        .init(
            name: "uris.txt", source: "apt-get --print-uris",
            text:
                "'http://h/pool/h_1%3a2_all.deb' h_1%3a2_all.deb 53088 SHA256:\(sha256)\n'http://h/InRelease' h_InRelease 0 \n",
            form: .urls, names: ["h_1%3a2_all.deb", "h_InRelease"],
            urls: ["http://h/pool/h_1%3a2_all.deb", "http://h/InRelease"],
            sizes: [53_088, nil], digests: [[.sha256], []]),
        .init(
            name: "urls.txt", source: "pip", text: "https://h/b.whl#sha256=\(sha256)&egg=b\nhttps://h/page#part\n",
            form: .urls,
            names: ["", ""], urls: ["https://h/b.whl", "https://h/page#part"], digests: [[.sha256], []]),
        .init(
            name: "checksums.txt", source: "TensorFlow Datasets",
            text: "https://h/a.gz    1648877   \(sha256)\nhttps://h/b.gz\t12\t\(sha256)\tb-1.gz\n", form: .urls,
            names: ["", "b-1.gz"],
            urls: ["https://h/a.gz", "https://h/b.gz"], sizes: [1_648_877, 12], digests: [[.sha256], [.sha256]]),
        .init(
            name: "urls.txt", source: "comments", text: "https://h/a.gz # the first\n", form: .urls, names: [""],
            urls: ["https://h/a.gz"]),
        .init(
            name: "warc.paths", source: "Common Crawl", text: "crawl-data/X/a.warc.gz\ncrawl-data/X/b%20c.gz # b\n",
            base: "https://h/d/",
            form: .urls, names: ["", ""],
            urls: ["https://h/d/crawl-data/X/a.warc.gz", "https://h/d/crawl-data/X/b%20c.gz"]),
        .init(
            name: "session", source: "aria2c --save-session",
            text:
                "https://h/a.iso\thttps://m/a.iso\n gid=2089b05ecca3d829\n dir=/srv/x\n out=a.iso\n checksum=sha-256=\(sha256)\n split=5\n"
                + " pause=false\n", form: .urls, names: ["a.iso"], urls: ["https://h/a.iso"], digests: [[.sha256]]),
        .init(
            name: "a.iso.meta4", source: "MirrorBrain",
            text:
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\n"
                + "<generator>MirrorBrain/2.17.0</generator>\n<origin dynamic=\"true\">http://h/d/a.iso.meta4</origin>\n"
                + "<published>2026-01-01T00:00:00Z</published>\n<publisher><name>P</name><url>http://p/</url></publisher>\n"
                + "<file name=\"a.iso\">\n<size>12</size>\n<hash type=\"md5\">\(md5)</hash>\n<hash type=\"sha-256\">\(sha256)</hash>\n"
                + "<pieces length=\"12\" type=\"sha-256\"><hash>\(sha256)</hash></pieces>\n<!-- Mirrors in the same country -->\n"
                + "<url location=\"de\" priority=\"2\">http://m2/a.iso</url>\n<url location=\"us\" priority=\"1\">https://m1/a.iso</url>\n"
                + "</file>\n</metalink>\n", form: .metalink4, names: ["a.iso"], urls: ["https://m1/a.iso"], sizes: [12],
            digests: [[.sha256, .md5]]),
        .init(
            name: "metalink", source: "Fedora's MirrorManager",
            text:
                "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\" type=\"dynamic\" "
                + "generator=\"mirrormanager\" xmlns:mm0=\"http://fedorahosted.org/mirrormanager\">\n<files>\n<file name=\"repomd.xml\">\n"
                + "<mm0:timestamp>1</mm0:timestamp>\n<size>12</size>\n<verification><hash type=\"md5\">\(md5)</hash>"
                + "<hash type=\"sha256\">\(sha256)</hash></verification>\n<resources maxconnections=\"1\">\n"
                + "<url protocol=\"http\" type=\"http\" location=\"DE\" preference=\"99\">http://m2/repomd.xml</url>\n"
                + "<url protocol=\"rsync\" type=\"rsync\" location=\"DE\" preference=\"100\">rsync://m1/repomd.xml</url>\n"
                + "<url protocol=\"https\" type=\"https\" location=\"DE\" preference=\"100\">https://m1/repomd.xml</url>\n"
                + "</resources>\n</file>\n</files>\n</metalink>\n", form: .metalink3, names: ["repomd.xml"],
            urls: ["https://m1/repomd.xml"], sizes: [12], digests: [[.sha256, .md5]], passedOver: ["rsync": 1]),
        .init(
            name: "list.txt", source: "curl -K",
            text:
                "# c\nurl = \"https://h/a.iso\"\noutput = \"b.iso\"\n-L\nurl=https://h/c\nnext\nurl: \"https://h/d\"\n",
            form: .curl,
            names: ["b.iso", "", ""], urls: ["https://h/a.iso", "https://h/c", "https://h/d"]),
        .init(
            name: "curlrc", source: "curl -K, with names from the URL",
            text: "url https://h/a\nremote-name\n-sSL\nretry 3\nuser-agent fk\n-C -\nurl = https://h/b\noutput b.out\n"
                + "--url https://h/c\n-LO\nurl = https://h/d\n-od.out\n",
            form: .curl, names: ["", "b.out", "", "d.out"],
            urls: ["https://h/a", "https://h/b", "https://h/c", "https://h/d"]),
        .init(
            name: "curlrc", source: "curl -K, with an option first",
            text: "--location\nretry = 3\nurl = \"https://h/a.iso\"\n", form: .curl, names: [""],
            urls: ["https://h/a.iso"]),
        .init(
            name: "config", source: "curl -K, with a word first",
            text: "silent\nshow-error\nurl = \"https://h/a.iso\"\n", form: .curl, names: [""],
            urls: ["https://h/a.iso"]),
        .init(
            name: "config", source: "curl -K, with an agent first",
            text: "user-agent = \"me/1\"\nurl = \"https://h/a.iso\"\n", form: .curl, names: [""],
            urls: ["https://h/a.iso"]),
        .init(
            name: "wget-x.sh", source: "ESGF",
            text: "#!/bin/bash\nversion=1\ndownload_files=\"$(cat <<EOF--dataset.file.url.chksum_type.chksum\n"
                + "'tas.nc' 'https://h/x/tas.nc' 'SHA256' '\(sha256)'\nEOF--dataset.file.url.chksum_type.chksum\n)\"\nwget 'x'\n",
            form: .esgf, names: ["tas.nc"], urls: ["https://h/x/tas.nc"], digests: [[.sha256]]),
    ]

    private static let checksums: [ListShape] = [
        .init(
            name: "sums", source: "the field of a Debian Release file",
            text: "SHA256:\n \(sha256) 21 main/f1.bin\n \(sha256)       7 main/f2.bin\n", base: "https://h/d/",
            form: .checksums, names: ["main/f1.bin", "main/f2.bin"],
            urls: ["https://h/d/main/f1.bin", "https://h/d/main/f2.bin"], sizes: [21, 7],
            digests: [[.sha256], [.sha256]]),
        .init(
            name: "SHA256SUMS", source: "sha256sum", text: "\(sha256) *a b.iso\n\\\(sha256)  c\\\\d.iso\n",
            base: "https://h/d/", form: .checksums, names: ["a b.iso", "c\\d.iso"],
            urls: ["https://h/d/a%20b.iso", "https://h/d/c%5Cd.iso"],
            digests: [[.sha256], [.sha256]]),
        .init(
            name: "CHECKSUM", source: "Fedora",
            text:
                "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# F.iso: 12 bytes\nSHA256 (F.iso) = \(sha256)\n"
                + "-----BEGIN PGP SIGNATURE-----\n\niQIz\n=AbCd\n-----END PGP SIGNATURE-----\n",
            base: "https://h/d/", form: .checksums, names: ["F.iso"], urls: ["https://h/d/F.iso"],
            digests: [[.sha256]]),
        .init(
            name: "registry.txt", source: "pooch",
            text: "# c\ndata/a.bin \(sha256)\nb.bin md5:\(md5) https://h/x/b.bin\n\"c d.bin\" \(sha256)\n",
            base: "https://h/d",
            form: .checksums, names: ["data/a.bin", "b.bin", "c d.bin"],
            urls: ["https://h/d/data/a.bin", "https://h/x/b.bin", "https://h/d/c%20d.bin"],
            digests: [[.sha256], [.md5], [.sha256]]),
        .init(
            name: "sums.txt", source: "Debian",
            text: "\(sha256)     2469 main/Packages\n\(md5) 12 main/x\n\(sha256)  12 y\n",
            base: "https://h/", form: .checksums, names: ["main/Packages", "main/x", "12 y"],
            urls: ["https://h/main/Packages", "https://h/main/x", "https://h/12%20y"], sizes: [2_469, 12, nil]),
        .init(
            name: "sums.txt", source: "mirrors", text: "\(sha256)  https://h/a/x.bin\n", form: .checksums, names: [""],
            urls: ["https://h/a/x.bin"], digests: [[.sha256]]),
        .init(
            name: "distinfo", source: "FreeBSD ports",
            text: "TIMESTAMP = 1619198385\nSHA256 (p/a.tar.xz) = \(sha256)\nSIZE (p/a.tar.xz) = 12\n",
            base: "https://h/",
            form: .checksums, names: ["p/a.tar.xz"], urls: ["https://h/p/a.tar.xz"], sizes: [12], digests: [[.sha256]]),
        .init(
            name: "distinfo", source: "OpenBSD ports", text: "SHA256 (a.tgz) = \(base64)\nSIZE (a.tgz) = 12\n",
            base: "https://h/",
            form: .checksums, names: ["a.tgz"], urls: ["https://h/a.tgz"], sizes: [12], digests: [[.sha256]]),
        .init(
            name: "distinfo", source: "pkgsrc",
            text: "$NetBSD$\n\nBLAKE2s (a.tgz) = \(sha256)\nSHA512 (a.tgz) = \(sha512)\nSize (a.tgz) = 12 bytes\n"
                .replacing(
                    "$NetBSD$\n\n", with: ""), base: "https://h/", form: .checksums, names: ["a.tgz"],
            urls: ["https://h/a.tgz"],
            sizes: [12], digests: [[.sha512]], passedOver: ["hash blake2s": 1]),
        .init(
            name: "Manifest", source: "Gentoo",
            text:
                "AUX p.patch 3 SHA512 \(sha512)\nDIST a.tar.xz 12 WHIRLPOOL \(sha512) SHA512 \(sha512)\nEBUILD a.ebuild 3 SHA512 \(sha512)\n",
            base: "https://h/", form: .checksums, names: ["a.tar.xz"], urls: ["https://h/a.tar.xz"], sizes: [12],
            digests: [[.sha512]], passedOver: ["AUX entry": 1, "EBUILD entry": 1, "hash whirlpool": 1]),
        .init(
            name: "stage3.tar.xz.DIGESTS", source: "Gentoo",
            text: "# WHIRLPOOL HASH\n\(sha512.replacing("5", with: "b"))  s.xz\n# SHA512 HASH\n\(sha512)  s.xz\n",
            base: "https://h/",
            form: .checksums, names: ["s.xz"], urls: ["https://h/s.xz"], digests: [[.sha512]],
            passedOver: ["hash whirlpool": 1]),
        .init(
            name: "a.hash", source: "Buildroot",
            text: "# locally calculated\nsha256  \(sha256)  a.tar.xz\nnone  xxx  b\n",
            base: "https://h/", form: .checksums, names: ["a.tar.xz"], urls: ["https://h/a.tar.xz"],
            digests: [[.sha256]],
            passedOver: ["file without a digest": 1]),
        .init(
            name: "SUMS", source: "a heading, and the name in front",
            text: "SHA256:\n\(sha256)  a.tgz\nb.tgz: \(sha256)\n",
            base: "https://h/", form: .checksums, names: ["a.tgz", "b.tgz"],
            urls: ["https://h/a.tgz", "https://h/b.tgz"]),
    ]

    private static let tables: [ListShape] = [
        .init(
            name: "runinfo.csv", source: "NCBI's Sequence Read Archive",
            text: "Run,ReleaseDate,size_MB,download_path,Experiment\nSRR1,2020-01-01,2,https://h/sra/SRR1,SRX1\n",
            form: .csv, names: [""], urls: ["https://h/sra/SRR1"], sizes: [nil]),
        .init(
            name: "t.txt", source: "exports with bars", text: "url|name|md5\nhttps://h/a|a.bin|\(md5)\n",
            form: .csv, names: ["a.bin"], urls: ["https://h/a"], digests: [[.md5]]),
        .init(
            name: "sequence.index", source: "1000 Genomes, with its addresses as https",
            text: "##Date=2020-01-01\n#url\tmd5\tRUN_ID\nhttps://h/a.gz\t\(md5)\tERR1\n",
            form: .csv, names: [""], urls: ["https://h/a.gz"], digests: [[.md5]]),
        .init(
            name: "t.csv", source: "pages and files",
            text: "title,link,download_url\nA,https://h/page/1,https://h/files/a.bin\n",
            form: .csv, names: [""], urls: ["https://h/files/a.bin"]),
        .init(
            name: "t.csv", source: "pandas",
            text: "url,size,sha256\nhttps://h/a,NA,NA\nhttps://h/b,nan,None\nhttps://h/c,12.0,\nhttps://h/d,-,-\n",
            form: .csv,
            names: ["", "", "", ""], urls: ["https://h/a", "https://h/b", "https://h/c", "https://h/d"],
            sizes: [nil, nil, 12, nil],
            digests: [[], [], [], []]),
        .init(
            name: "t.tsv", source: "captions",
            text: "caption\turl\n\"Hello\" she said\thttps://h/1\n\"open\thttps://h/2\n5.25\"\thttps://h/3\n",
            form: .csv,
            names: ["", "", ""], urls: ["https://h/1", "https://h/2", "https://h/3"]),
        .init(
            name: "t.csv", source: "blanks, a second header and other line ends",
            text: "url, name , md5sum\rhttps://h/a, a b , \(md5)\rurl, name , md5sum\r https://h/b ,\"b, c\",\r",
            form: .csv,
            names: ["a b", "b, c"], urls: ["https://h/a", "https://h/b"], digests: [[.md5], []]),
        .init(
            name: "t.csv", source: "names of digests",
            text:
                "url,checksum_md5,file_sha256,hash,crc32\nhttps://h/a,\(md5),\(sha256),sha1:\(SampleDigest.hex(.sha1)),00000000\n",
            form: .csv, names: [""], urls: ["https://h/a"], digests: [[.sha256, .sha1, .md5]],
            passedOver: ["hash crc32": 1]),
        .init(
            name: "t.csv", source: "names below a base", text: "name,size,md5\nd/a.bin,3,\(md5)\n", base: "https://h/",
            form: .csv,
            names: ["d/a.bin"], urls: ["https://h/d/a.bin"], sizes: [3], digests: [[.md5]]),
        .init(
            name: "ls.jsonl", source: "s5cmd --json ls",
            text:
                "{\"key\":\"s3://b/d/a.bin\",\"etag\":\"\(md5)\",\"last_modified\":\"2026-01-01T00:00:00Z\",\"type\":\"file\",\"size\":12}\n"
                + "{\"key\":\"s3://b/d/e/\",\"type\":\"directory\"}\n", base: "https://b.h/", form: .jsonLines,
            names: ["d/a.bin"], urls: ["https://b.h/d/a.bin"], sizes: [12]),
        .init(
            name: "gdc_manifest.txt", source: "the Genomic Data Commons",
            text: "id\tfilename\tmd5\tsize\tstate\nu-1\ta.bam\t\(md5)\t12\treleased\n", base: "https://h/data/",
            form: .csv, names: ["a.bam"], urls: ["https://h/data/a.bam"], sizes: [12], digests: [[.md5]]),
        .init(
            name: "t.jsonl", source: "path and name",
            text:
                "{\"url\":\"https://h/1\",\"path\":\"d/a.bin\",\"name\":\"a.bin\"}\n{\"url\":\"https://h/2\",\"name\":\"b.bin\",\"path\":\"d\"}\n",
            form: .jsonLines, names: ["d/a.bin", "d/b.bin"], urls: ["https://h/1", "https://h/2"]),
        .init(
            name: "one.json", source: "one file on one line",
            text: "{\"url\":\"https://h/1\",\"size\":\"3\",\"type\":\"x\"}", form: .jsonLines,
            names: [""], urls: ["https://h/1"], sizes: [3]),
    ]

    private static let objects: [ListShape] = [
        .init(
            name: "urls.json", source: "programs", text: "[\"https://h/a\",\n \"https://h/b\"]",
            form: .json, names: ["", ""], urls: ["https://h/a", "https://h/b"]),
        .init(
            name: "urls.json", source: "programs", text: "{\"urls\":[\"https://h/a\",\"https://h/b\"],\"count\":2}",
            form: .record, names: ["", ""], urls: ["https://h/a", "https://h/b"]),
        .init(
            name: "index.json", source: "HashiCorp's releases",
            text: "{\"name\":\"x\",\"shasums\":\"x_SHA256SUMS\",\"builds\":[{\"os\":\"linux\",\"filename\":\"x.zip\","
                + "\"url\":\"https://h/x.zip\"}],\"url_docs\":\"https://docs\"}",
            form: .json, names: ["x.zip"], urls: ["https://h/x.zip"]),
        .init(
            name: "article.json", source: "figshare",
            text:
                "{\"files\":[{\"id\":1,\"name\":\"a.zip\",\"size\":10,\"download_url\":\"https://h/f/1\",\"computed_md5\":\"\(md5)\","
                + "\"supplied_md5\":\"\(md5)\"}],\"id\":6,\"url\":\"https://api/6\"}",
            form: .record, names: ["a.zip"], urls: ["https://h/f/1"], sizes: [10], digests: [[.md5]]),
        .init(
            name: "releases.json", source: "GitHub",
            text:
                "[{\"url\":\"https://api/1\",\"tag_name\":\"v1\",\"assets\":[{\"url\":\"https://api/7\",\"name\":\"r.tgz\",\"size\":9,"
                + "\"digest\":\"sha256:\(sha256)\",\"browser_download_url\":\"https://h/v1/r.tgz\"}]},{\"tag_name\":\"v2\",\"assets\":["
                + "{\"name\":\"r.tgz\",\"browser_download_url\":\"https://h/v2/r.tgz\"}]}]",
            form: .json, names: ["v1/r.tgz", "v2/r.tgz"], urls: ["https://h/v1/r.tgz", "https://h/v2/r.tgz"],
            sizes: [9, nil],
            digests: [[.sha256], []]),
        .init(
            name: "releases.json", source: "GitLab",
            text:
                "[{\"tag_name\":\"v1\",\"_links\":{\"self\":\"https://g/p/-/releases/v1\"},\"assets\":{\"count\":2,\"sources\":["
                + "{\"format\":\"zip\",\"url\":\"https://g/p/-/archive/v1/p-v1.zip\"}],\"links\":[{\"id\":1,\"name\":\"a.bin\",\"url\":"
                + "\"https://h/up/a.bin\",\"direct_asset_url\":\"https://g/p/-/releases/v1/downloads/a.bin\"}]}}]",
            form: .json, names: ["v1/p-v1.zip", "v1/a.bin"],
            urls: ["https://g/p/-/archive/v1/p-v1.zip", "https://g/p/-/releases/v1/downloads/a.bin"]),
        .init(
            name: "releases.json", source: "Gitea",
            text:
                "[{\"id\":1,\"tag_name\":\"v1\",\"url\":\"https://g/api/1\",\"tarball_url\":\"https://g/o/r/archive/v1.tar.gz\",\"assets\":["
                + "{\"id\":7,\"name\":\"a.bin\",\"size\":9,\"browser_download_url\":\"https://g/o/r/releases/download/v1/a.bin\"}]}]",
            form: .json, names: ["v1/a.bin"], urls: ["https://g/o/r/releases/download/v1/a.bin"], sizes: [9]),
        .init(
            name: "item.json", source: "Internet Archive",
            text:
                "{\"dir\":\"/12/items/ITEM\",\"files\":[{\"name\":\"a b.mp3\",\"size\":\"12\",\"md5\":\"\(md5)\"}],\"server\":\"ia1\"}",
            form: .record, names: ["a b.mp3"], urls: ["https://archive.org/download/ITEM/a%20b.mp3"], sizes: [12],
            digests: [[.md5]]),
        .init(
            name: "datapackage.json", source: "Data Package",
            text:
                "{\"resources\":[{\"name\":\"x\",\"path\":\"data/x y.csv\",\"bytes\":12,\"hash\":\"\(md5)\"},{\"name\":\"y\",\"path\":"
                + "[\"https://h/y1.csv\",\"https://h/y2.csv\"]}],\"licenses\":[{\"name\":\"l\",\"path\":\"https://l/\"}]}",
            base: "https://h/d/", form: .record, names: ["data/x y.csv", "", ""],
            urls: ["https://h/d/data/x%20y.csv", "https://h/y1.csv", "https://h/y2.csv"], sizes: [12, nil, nil],
            digests: [[.md5], [], []]),
        .init(
            name: "item.json", source: "STAC",
            text:
                "{\"type\":\"Feature\",\"id\":\"S1\",\"assets\":{\"B01\":{\"href\":\"../S1/B01.tif\",\"title\":\"Band\",\"file:size\":12,"
                + "\"file:checksum\":\"1220\(sha256)\"}},\"links\":[{\"rel\":\"self\",\"href\":\"https://page\"}]}",
            base: "https://h/d/", form: .json, names: [""], urls: ["https://h/S1/B01.tif"], sizes: [12],
            digests: [[.sha256]]),
        .init(
            name: "items.json", source: "STAC",
            text:
                "{\"type\":\"FeatureCollection\",\"features\":[{\"id\":\"S1\",\"assets\":{\"B\":{\"href\":\"https://h/1/B.tif\"}}},"
                + "{\"id\":\"S2\",\"assets\":{\"B\":{\"href\":\"https://h/2/B.tif\"}}}]}",
            form: .json, names: ["S1/B.tif", "S2/B.tif"], urls: ["https://h/1/B.tif", "https://h/2/B.tif"]),
        .init(
            name: "modrinth.index.json", source: "Modrinth",
            text:
                "{\"versionId\":\"1\",\"files\":[{\"path\":\"mods/a.jar\",\"hashes\":{\"sha1\":\"\(SampleDigest.hex(.sha1))\",\"sha512\":"
                + "\"\(sha512)\"},\"downloads\":[\"https://h/a.jar\"],\"fileSize\":12}]}",
            form: .record, names: ["mods/a.jar"], urls: ["https://h/a.jar"], sizes: [12], digests: [[.sha512, .sha1]]),
        .init(
            name: "sources.json", source: "flatpak-builder",
            text:
                "[{\"type\":\"file\",\"url\":\"https://h/a\",\"sha256\":\"\(sha256)\",\"dest\":\"cargo/v\",\"dest-filename\":\"x.bin\"},"
                + "{\"type\":\"file\",\"url\":\"https://h/b.bin\",\"sha256\":\"\(sha256)\",\"dest\":\"d\"},"
                + "{\"type\":\"inline\",\"contents\":\"x\",\"dest\":\"d\"}]",
            form: .json, names: ["cargo/v/x.bin", "d/b.bin"], urls: ["https://h/a", "https://h/b.bin"],
            digests: [[.sha256], [.sha256]], passedOver: ["inline source": 1]),
        .init(
            name: "pypi.json", source: "PyPI",
            text:
                "{\"info\":{\"home_page\":\"https://p\"},\"releases\":{\"1\":[{\"url\":\"https://h/old\",\"size\":1}]},\"urls\":["
                + "{\"filename\":\"a.whl\",\"url\":\"https://h/a.whl\",\"size\":3,\"digests\":{\"md5\":\"\(md5)\",\"sha256\":\"\(sha256)\"}}]}",
            form: .record, names: ["a.whl"], urls: ["https://h/a.whl"], sizes: [3], digests: [[.sha256, .md5]]),
        .init(
            name: "osf.json", source: "OSF",
            text:
                "{\"data\":[{\"attributes\":{\"name\":\"a.csv\",\"kind\":\"file\",\"materialized_path\":\"/d/a.csv\",\"path\":\"/5f\","
                + "\"size\":12,\"extra\":{\"hashes\":{\"sha256\":\"\(sha256)\"}}},\"links\":{\"self\":\"https://api/1\",\"download\":"
                + "\"https://h/dl/1\"}},{\"attributes\":{\"name\":\"d\",\"kind\":\"folder\"},\"links\":{\"self\":\"https://api/2\"}}]}",
            form: .record, names: ["d/a.csv"], urls: ["https://h/dl/1"], sizes: [12], digests: [[.sha256]]),
        .init(
            name: "search.json", source: "ESGF",
            text:
                "{\"response\":{\"numFound\":1,\"docs\":[{\"title\":\"tas.nc\",\"size\":12,\"checksum\":[\"\(sha256)\"],\"checksum_type\":"
                + "[\"SHA256\"],\"url\":[\"https://h/tas.nc|application/netcdf|HTTPServer\",\"https://h/t.html|x|OPENDAP\"]}]}}",
            form: .json, names: [""], urls: ["https://h/tas.nc"], sizes: [12], digests: [[.sha256]]),
        .init(
            name: "package_show.json", source: "CKAN",
            text:
                "{\"help\":\"https://h\",\"result\":{\"url\":\"https://page\",\"resources\":[{\"url\":\"https://h/a.csv\",\"name\":\"A table\","
                + "\"size\":null,\"hash\":\"\"}]}}",
            form: .json, names: [""], urls: ["https://h/a.csv"]),
        .init(
            name: "c.json", source: "Kaggle's Croissant",
            text:
                "{\"@type\":\"sc:Dataset\",\"url\":\"https://page\",\"distribution\":[{\"@type\":\"cr:FileObject\",\"name\":\"a.zip\","
                + "\"contentSize\":\"36.771 KB\",\"contentUrl\":\"https://h/a\",\"md5\":\"AAAAAAAAAAAAAAAAAAAAAA==\"}]}",
            form: .record, names: ["a.zip"], urls: ["https://h/a"], digests: [[.md5]]),
        .init(
            name: "page.json", source: "schema.org, one file",
            text:
                "{\"@context\":\"https://schema.org\",\"@type\":\"Dataset\",\"url\":\"https://page\",\"distribution\":{\"@type\":"
                + "\"DataDownload\",\"contentUrl\":\"https://h/x.csv\"}}",
            form: .record, names: [""], urls: ["https://h/x.csv"]),
        .init(
            name: "files.json", source: "any program",
            text:
                "{\"result\":{\"list\":[{\"id\":1,\"fileUrl\":\"https://h/a\",\"fileName\":\"x/a.bin\",\"bytes\":\"12\",\"md5Hash\":\"\(md5)\"}]},"
                + "\"authors\":[{\"name\":\"A\",\"url\":\"https://a\"}],\"other\":[{\"url\":\"https://page\",\"name\":\"x\"}]}",
            form: .json, names: ["x/a.bin"], urls: ["https://h/a"], sizes: [12], digests: [[.md5]]),
        .init(
            name: "integrity.json", source: "npm",
            text: "[{\"url\":\"https://h/a.tgz\",\"integrity\":\"sha256-\(base64)\"}]", form: .json,
            names: [""], urls: ["https://h/a.tgz"], digests: [[.sha256]]),
    ]
}
