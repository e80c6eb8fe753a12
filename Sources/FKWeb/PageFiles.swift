/// A file of the page in the browser.
struct PageFile {
    let type: String
    let bytes: [UInt8]

    static let all: [String: PageFile] = {
        let index = PageFile(type: "text/html; charset=utf-8", bytes: PackageResources.index_html)
        return [
            "/": index, "/index.html": index,
            "/page.css": PageFile(type: "text/css; charset=utf-8", bytes: PackageResources.page_css),
            "/page.js": PageFile(type: "text/javascript; charset=utf-8", bytes: PackageResources.page_js),
        ]
    }()
}
