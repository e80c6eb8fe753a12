import TestSupport
import Testing

@testable import FKManifests

#if canImport(FoundationXML)
    import FoundationXML
#endif

/// The reader is held to Foundation's parser: the same documents are well-formed to both, and say the same.
@Suite("XML") struct ManifestXMLTests {
    /// What a document says, as one text; nil if it is refused.
    static func events(_ bytes: [UInt8]) -> String? {
        let (log, fault) = outcome(bytes)
        return fault == "" ? log : nil
    }

    /// What a document says up to its end or fault, and the fault with its offset.
    ///
    /// - Parameter portions: the lengths of the portions, again and again; empty for the whole document at once.
    static func outcome(_ bytes: [UInt8], portions: [Int] = []) -> (log: String, fault: String) {
        var reader = portions.isEmpty ? XMLReader(bytes) : XMLReader()
        var rest = bytes[...]
        var number = 0
        var log = ""
        do throws(XMLReader.Fault) {
            while true {
                switch try reader.next() {
                case .start(let element):
                    let attributes = element.attributes.filter { !$0.name.hasPrefix("xml:") }.sorted {
                        $0.name < $1.name
                    }
                    log +=
                        "<{\(element.namespace)}\(element.name)"
                        + attributes.map { " \($0.name)=\($0.value.debugDescription)" }.joined() + ">"
                case .end: log += "</>"
                case .text(let text): log += text
                case .done: return (log, "")
                case .more:
                    let next = rest.prefix(portions[number % portions.count])
                    number += 1
                    rest = rest.dropFirst(next.count)
                    reader.slide(by: reader.index, adding: Array(next))
                    if rest.isEmpty { reader.finish() }
                }
            }
        } catch {
            return (log, "\(error.reason) at \(reader.position - reader.index + error.offset)")
        }
    }

    /// The same by Foundation's parser.
    static func reference(_ bytes: [UInt8]) -> String? {
        final class Listener: NSObject, XMLParserDelegate {
            var log = ""
            var failed = false
            func parser(
                _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
                attributes: [String: String] = [:]
            ) {
                let plain = attributes.filter { !$0.key.contains(":") && $0.key != "xmlns" }.sorted { $0.key < $1.key }
                log +=
                    "<{\(namespaceURI ?? "")}\(name)" + plain.map { " \($0.key)=\($0.value.debugDescription)" }.joined()
                    + ">"
            }
            func parser(
                _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
            ) { log += "</>" }
            func parser(_ parser: XMLParser, foundCharacters string: String) { log += string }
            func parser(_ parser: XMLParser, foundCDATA block: Data) { log += String(decoding: block, as: UTF8.self) }
            func parser(_ parser: XMLParser, parseErrorOccurred error: any Error) { failed = true }
        }
        let parser = XMLParser(data: Data(bytes))
        parser.shouldProcessNamespaces = true
        let listener = Listener()
        parser.delegate = listener
        return parser.parse() && !listener.failed ? listener.log : nil
    }

    /// False for documents with an instruction that has no text, such as `<?x?>`: Foundation's parser ends the
    /// process at one.
    static func isSafeForFoundation(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        return text.utf8.split(separator: UInt8(ascii: "<")).allSatisfy { part in
            guard part.first == UInt8(ascii: "?") else { return true }
            let inner = part.dropFirst().prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: ">") }
            return inner.split(whereSeparator: { $0 <= 0x20 }).count > 1
        }
    }

    static let documents = [
        "<a/>", "<a></a>", "<a b='1' c=\"&lt;&#x41;&quot;\"/>",
        "<a>t&amp;<b>u</b>\r\nv<![CDATA[<x>]]></a>\n<!-- c --><?p q?>",
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<a xmlns=\"urn:a\" xmlns:x='urn:x'><x:b c=\"1\" x:d=\"2\"/><b xmlns=\"\"/></a>",
        "\u{feff}<ü é='€'>😀&#128512;</ü>", "<a b='x\ty\nz'/>", "<a><?x y?><!----></a >",
        "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"a\"><size>1</size><url>http://h/</url></file></metalink>",
    ]

    @Test("Well-formed documents say the same", arguments: documents) func same(text: String) {
        let events = Self.events(Array(text.utf8))
        #expect(events != nil && events == Self.reference(Array(text.utf8)))
    }

    @Test(
        "What is not well-formed is refused",
        arguments: [
            "", " ", "a", "<", "<a", "<a>", "<a", "<a/", "</a>", "<a></b>", "<a/><b/>", "<a/>x", "x<a/>", "<a b/>",
            "<a b=1/>", "<a b='1' b='2'/>", "<a b='<'/>", "<a b='1'c='2'/>", "<a>&</a>", "<a>&x;</a>", "<a>&#0;</a>",
            "<a>&#xd800;</a>", "<a>&#x110000;</a>", "<a>&#;</a>", "<a>]]></a>", "<a><!-- -- --></a>", "<a><!-- </a>",
            "<a><![CDATA[</a>", "<1/>", "<a>\u{b}</a>", "<a>\u{fffe}</a>", "<x:a/>", "<a x:b='1'/>",
            "<a:b:c xmlns:a='u'/>", "<?xml version='1.0'?><?xml?><a/>", " <?xml version='1.0'?><a/>",
            "<?xml version='1.0' encoding='latin-1'?><a/>", "<!DOCTYPE a><a/>", "<a><!ELEMENT></a>", "<a xmlns:x=''/>",
            "<? ?><a/>", "<a\u{0}/>",
        ])
    func refused(text: String) {
        #expect(Self.events(Array(text.utf8)) == nil)
    }

    @Test("An instruction without text is read, where Foundation's parser ends the process") func emptyInstruction() {
        #expect(Self.events(Array("<a><?x?></a>".utf8)) == "<{}a></>")
    }

    @Test("Nesting and attributes are limited") func limits() {
        let deep = String(repeating: "<a>", count: 101) + String(repeating: "</a>", count: 101)
        #expect(Self.events(Array(deep.utf8)) == nil)
        let wide = "<a " + (0..<201).map { "b\($0)='1' " }.joined() + "/>"
        #expect(Self.events(Array(wide.utf8)) == nil)
    }

    @Test("Places of offsets, in any order") func places() {
        let bytes = Array("ab\ncd\r\n\re\n".utf8)
        let wanted = [
            (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (4, 1), (4, 2), (5, 1),
        ]
        var random = SeededRandom(seed: 1)
        var places = TextPlaces()
        for _ in 0..<1_000 {
            let offset = random.below(wanted.count)
            let place = places.place(of: offset, in: bytes)
            #expect(place == wanted[offset], "\(offset)")
        }
    }
}
