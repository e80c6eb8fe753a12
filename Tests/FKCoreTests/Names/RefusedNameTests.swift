import TestSupport
import Testing

@testable import FKEngine

@Suite("Names that the file system refuses")
struct RefusedNameTests {
    @Test("other characters take the place of those that exFAT, NTFS and SMB refuse")
    func portable() {
        let table = [
            ("a.bin", "a.bin"), ("log 15:50:04.txt", "log 15_50_04.txt"), ("a?b*c|d<e>f\"g\\h", "a_b_c_d_e_f_g_h"),
            ("end.", "end_"), ("end ", "end_"), ("ü.txt", "ü.txt"), ("a\u{1}b", "a_b"),
        ]
        for (name, expected) in table { #expect(FileNameParts.portable(name) == expected) }
        #expect(FileNameParts.portable("ü:.txt", onlyASCII: true) == "__.txt")
        #expect(FileNameParts.refused(in: "a:b") == ":" && FileNameParts.refused(in: "end.") == ".")
        #expect(FileNameParts.refused(in: "ü.txt") == nil && FileNameParts.refused(in: "ü.txt", onlyASCII: true) == "ü")
    }

    @Test("a folder learns from refusals: first the characters of other systems, then those beyond ASCII")
    func learned() throws {
        let temporary = try TemporaryFolder()
        let folder = try Folder(path: temporary.path, creates: true)
        let (colon, umlaut) = ("a:b", "ü")
        #expect(folder.fitted(colon) == colon && folder.refusal(of: colon, ENOSPC) == nil)
        #expect(folder.refusal(of: "plain", EINVAL) == nil)
        let refusal = try #require(folder.refusal(of: colon, EINVAL))
        #expect(refusal.message == "The file system of \(folder.path) refuses the name \"a:b\" because of ':'.")
        #expect(refusal.code == .destination && refusal.remedy == .chooseFittingName)
        let other = try Folder(path: TemporaryFolder().path, creates: true)
        #expect(!other.useStricterNames(for: colon, refusal) && other.fitted(colon) == colon)
        #expect(folder.useStricterNames(for: colon, refusal))
        #expect(folder.fitted(colon) == "a_b" && folder.fitted(umlaut) == umlaut)
        let second = try #require(folder.refusal(of: umlaut, EILSEQ))
        #expect(folder.useStricterNames(for: umlaut, second) && folder.fitted(umlaut) == "_")
        #expect(!folder.useStricterNames(for: umlaut, second))
    }
}
