/// Pages that servers make of a folder with `a b.txt` (12 bytes), `sub/` and `x&y#1.bin`, as they send them.
enum ListingPages {
    struct Page: Sendable, CustomStringConvertible {
        let name: String
        let text: String
        /// True if each file has a text beside it that tells its version.
        let hasVersions: Bool

        var description: String { name }
    }

    /// The folder of all pages.
    static let url = "http://h.example/pub/"

    static let all = [
        Page(
            name: "nginx 1.22",
            text: """
                <html>\r
                <head><title>Index of /pub/</title></head>\r
                <body>\r
                <h1>Index of /pub/</h1><hr><pre><a href="../">../</a>\r
                <a href="sub/">sub/</a>                                               26-Nov-2026 18:44                   -\r
                <a href="a%20b.txt">a b.txt</a>                                            26-Nov-2026 18:44                  12\r
                <a href="x%26y%231.bin">x&amp;y#1.bin</a>                                        26-Nov-2026 18:44               40960\r
                </pre><hr></body>\r
                </html>\r

                """, hasVersions: true),
        Page(
            name: "Apache 2.4, plain",
            text: """
                <!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
                <html>
                 <head>
                  <title>Index of /pub</title>
                 </head>
                 <body>
                <h1>Index of /pub</h1>
                <ul><li><a href="/"> Parent Directory</a></li>
                <li><a href="a%20b.txt"> a b.txt</a></li>
                <li><a href="sub/"> sub/</a></li>
                <li><a href="x&amp;y%231.bin"> x&amp;y#1.bin</a></li>
                </ul>
                </body></html>

                """, hasVersions: false),
        Page(
            name: "Apache 2.4, fancy",
            text: """
                <html><head><title>Index of /pub</title></head>
                 <body>
                <h1>Index of /pub</h1>
                <pre><img src="/icons/blank.gif" alt="Icon "> <a href="?C=N;O=D">Name</a>                    <a href="?C=M;O=A">Last modified</a>      <a href="?C=S;O=A">Size</a>  <a href="?C=D;O=A">Description</a><hr><img src="/icons/back.gif" alt="[PARENTDIR]"> <a href="/">Parent Directory</a>                             -
                <a href="a%20b.txt"><img src="/icons/text.gif" alt="[TXT]"></a> <a href="a%20b.txt">a b.txt</a>                 2026-11-26 18:44   12
                <img src="/icons/folder.gif" alt="[DIR]"> <a href="sub/">sub/</a>                    2026-11-26 18:44    -
                <img src="/icons/unknown.gif" alt="[   ]"> <a href="x&amp;y%231.bin">x&amp;y#1.bin</a>               2026-11-26 18:44   40K
                <hr></pre>
                </body></html>
                """, hasVersions: true),
        Page(
            name: "Apache 2.4, table",
            text: """
                <html><head><title>Index of /pub</title></head><body><h1>Index of /pub</h1>
                  <table>
                   <tr><th valign="top"><img src="/icons/blank.gif" alt="[ICO]"></th><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th><th><a href="?C=S;O=A">Size</a></th></tr>
                   <tr><th colspan="4"><hr></th></tr>
                <tr><td valign="top"><img src="/icons/back.gif" alt="[PARENTDIR]"></td><td><a href="/">Parent Directory</a></td><td>&nbsp;</td><td align="right">  - </td></tr>
                <tr><td valign="top"><img src="/icons/text.gif" alt="[TXT]"></td><td><a href="a%20b.txt">a b.txt</a></td><td align="right">2026-11-26 18:44  </td><td align="right"> 12 </td></tr>
                <tr><td valign="top"><img src="/icons/folder.gif" alt="[DIR]"></td><td><a href="sub/">sub/</a></td><td align="right">2026-11-26 18:44  </td><td align="right">  - </td></tr>
                <tr><td valign="top"><img src="/icons/unknown.gif" alt="[   ]"></td><td><a href="x&amp;y%231.bin">x&amp;y#1.bin</a></td><td align="right">2026-11-26 18:44  </td><td align="right"> 40K</td></tr>
                   <tr><th colspan="4"><hr></th></tr>
                </table>
                <address>Apache/2.4.66 (Debian) Server at h.example Port 80</address>
                </body></html>
                """, hasVersions: true),
        Page(
            name: "lighttpd 1.4",
            text: """
                <!DOCTYPE html>
                <html>
                <head>
                <title>Index of /pub/</title>
                <style type="text/css">
                a, a:active {text-decoration: none; color: blue;}
                </style>
                </head>
                <body>
                <h2>Index of /pub/</h2>
                <div class="list">
                <table summary="Directory Listing" cellpadding="0" cellspacing="0">
                <thead><tr><th class="n">Name</th><th class="m">Last Modified</th><th class="s">Size</th><th class="t">Type</th></tr></thead>
                <tbody>
                <tr class="d"><td class="n"><a href="../">..</a>/</td><td class="m">&nbsp;</td><td class="s">- &nbsp;</td><td class="t">Directory</td></tr>
                <tr class="d"><td class="n"><a href="sub/">sub</a>/</td><td class="m">2026-Nov-26 18:44:51</td><td class="s">- &nbsp;</td><td class="t">Directory</td></tr>
                <tr><td class="n"><a href="a%20b.txt">a b.txt</a></td><td class="m">2026-Nov-26 18:44:51</td><td class="s">0.1K</td><td class="t">application/octet-stream</td></tr>
                <tr><td class="n"><a href="x%26y%231.bin">x&#x26;y&#x23;1.bin</a></td><td class="m">2026-Nov-26 18:44:51</td><td class="s">40.0K</td><td class="t">application/octet-stream</td></tr>
                </tbody>
                </table>
                </div>
                <div class="foot">lighttpd/1.4.69</div>
                <script type="text/javascript">
                // <!--
                var click_column; if (1 < 2) { document.write("<a href='evil.txt'>evil.txt</a>"); }
                // -->
                </script></body>
                </html>
                """, hasVersions: true),
        Page(
            name: "Caddy 2",
            text: """
                <!DOCTYPE html>
                <html>
                <head><title>/pub/</title><link rel="canonical" href="/pub/"  /><style>body{}</style></head>
                <body onload="initPage()">
                <header><h1><a href="/">/</a><a href="/pub/">pub</a></h1></header>
                <main><div class="listing"><table aria-describedby="summary">
                <thead><tr><th></th><th><a href="?sort=name&order=desc">Name</a></th><th><a href="?sort=size&order=asc">Size</a></th></tr></thead>
                <tbody>
                <tr><td></td><td><a href=".."><span class="goup">Go up</span></a></td><td>&mdash;</td></tr>
                <tr class="file"><td></td><td><a href="./sub/"><svg width="1.5em"><use xlink:href="#folder"></use></svg><span class="name">sub</span></a></td><td data-order="-1">&mdash;</td><td><time datetime="2026-11-26T18:44:51Z">11/26/2026 06:44:51 PM +00:00</time></td></tr>
                <tr class="file"><td></td><td><a href="./a%20b.txt"><svg></svg><span class="name">a b.txt</span></a></td><td data-order="12">12 B</td><td><time datetime="2026-11-26T18:44:51Z">11/26/2026 06:44:51 PM +00:00</time></td></tr>
                <tr class="file"><td></td><td><a href="./x&amp;y%231.bin"><svg></svg><span class="name">x&amp;y#1.bin</span></a></td><td data-order="40960">40 KiB</td><td><time datetime="2026-11-26T18:44:51Z">11/26/2026 06:44:51 PM +00:00</time></td></tr>
                </tbody></table></div></main>
                <footer>Served with <a rel="noopener noreferrer" href="https://caddyserver.com">Caddy</a></footer>
                <script>var filterEl = document.getElementById('filter');</script>
                </body>
                </html>
                """, hasVersions: true),
        Page(
            name: "Python's http.server",
            text: """
                <!DOCTYPE HTML>
                <html lang="en">
                <head>
                <meta charset="utf-8">
                <title>Directory listing for /pub/</title>
                </head>
                <body>
                <h1>Directory listing for /pub/</h1>
                <hr>
                <ul>
                <li><a href="a%20b.txt">a b.txt</a></li>
                <li><a href="sub/">sub/</a></li>
                <li><a href="x%26y%231.bin">x&amp;y#1.bin</a></li>
                </ul>
                <hr>
                </body>
                </html>
                """, hasVersions: false),
        Page(
            name: "Go's http.FileServer",
            text: """
                <!doctype html>
                <meta name="viewport" content="width=device-width">
                <pre>
                <a href="a%20b.txt">a b.txt</a>
                <a href="sub/">sub/</a>
                <a href="x&amp;y%231.bin">x&amp;y#1.bin</a>
                </pre>
                """, hasVersions: false),
        Page(
            name: "rclone serve http",
            text: """
                <!DOCTYPE html>
                <html lang="en"><head><meta charset="utf-8"><title>Directory listing of /pub</title></head>
                <body onload='filter()'><svg></svg>
                <header><h1><a href="../../">/</a><a href="./">pub</a></h1></header>
                <main><div class="listing"><table><thead><tr><th>
                <a href="?sort=namedirfirst&order=desc" class="icon"><svg></svg></a><a href="?sort=name&amp;order=asc">Name</a></th></tr></thead><tbody>
                <tr><td><a href="../"><span class="goup">Go up</span></a></td><td>&mdash;</td></tr>
                <tr class="file"><td></td><td><a href="./sub/"><svg></svg><span class="name">sub/</span></a></td><td>&mdash;</td><td>2026-11-26 18:44:51 +0000 UTC</td></tr>
                <tr class="file"><td></td><td><a href="./a%20b.txt"><svg></svg><span class="name">a b.txt</span></a></td><td><size>12</size></td><td>2026-11-26 18:44:51 +0000 UTC</td></tr>
                <tr class="file"><td></td><td><a href="./x&amp;y%231.bin"><svg></svg><span class="name">x&amp;y#1.bin</span></a></td><td><size>40960</size></td><td>2026-11-26 18:44:51 +0000 UTC</td></tr>
                </tbody></table></div></main></body></html>
                """, hasVersions: true),
        Page(
            name: "IIS 10",
            text: """
                <html><head><title>h.example - /pub/</title></head><body><H1>h.example - /pub/</H1><hr>

                <pre><A HREF="/">[To Parent Directory]</A><br><br>11/26/2026  6:44 PM        &lt;dir&gt; <A HREF="/pub/sub/">sub</A><br>11/26/2026  6:44 PM           12 <A HREF="/pub/a%20b.txt">a b.txt</A><br>11/26/2026  6:44 PM        40960 <A HREF="/pub/x&amp;y%231.bin">x&amp;y#1.bin</A><br></pre><hr></body></html>
                """, hasVersions: true),
        Page(
            name: "h5ai, without scripts",
            text: """
                <!DOCTYPE html><html class="no-js" lang="en"><head><meta charset="utf-8"><title>index - powered by h5ai v0.30.0 (https://larsjung.de/h5ai/)</title>
                <link rel="stylesheet" href="/_h5ai/public/css/styles.css"><script src="/_h5ai/public/js/scripts.js"></script></head>
                <body class="index"><div id="fallback"><table><tr><th class="fb-i"></th><th class="fb-n"><span>Name</span></th><th class="fb-d"><span>Last modified</span></th><th class="fb-s"><span>Size</span></th></tr>
                <tr><td class="fb-i"><img src="/_h5ai/public/images/fallback/folder-parent.png" alt="folder-parent"/></td><td class="fb-n"><a href="..">Parent Directory</a></td><td class="fb-d"></td><td class="fb-s"></td></tr>
                <tr><td class="fb-i"><img src="/_h5ai/public/images/fallback/folder.png" alt="folder"/></td><td class="fb-n"><a href="/pub/sub/">sub</a></td><td class="fb-d">2026-11-26 18:44</td><td class="fb-s"></td></tr>
                <tr><td class="fb-i"><img src="/_h5ai/public/images/fallback/file.png" alt="file"/></td><td class="fb-n"><a href="/pub/a%20b.txt">a b.txt</a></td><td class="fb-d">2026-11-26 18:44</td><td class="fb-s">1 KB</td></tr>
                <tr><td class="fb-i"><img src="/_h5ai/public/images/fallback/file.png" alt="file"/></td><td class="fb-n"><a href="/pub/x%26y%231.bin">x&amp;y#1.bin</a></td><td class="fb-d">2026-11-26 18:44</td><td class="fb-s">40 KB</td></tr>
                </table></div></body></html>
                """, hasVersions: true),
        Page(
            name: "Tomcat 9",
            text: """
                <!doctype html><html><head><title>Directory Listing For [/pub/]</title><style>body {}</style></head><body><h1>Directory Listing For [/pub/]</h1><hr class="line">
                <table width="100%" cellspacing="0"><tr><td align="left"><font size="+1"><strong>Filename</strong></font></td></tr>
                <tr><td align="left">&nbsp;&nbsp;<a href="/pub/sub/"><tt>sub/</tt></a></td><td align="right"><tt>&nbsp;</tt></td><td align="right"><tt>Thu, 26 Nov 2026 18:44:51 GMT</tt></td></tr>
                <tr bgcolor="#eeeeee"><td align="left">&nbsp;&nbsp;<a href="/pub/a%20b.txt"><tt>a b.txt</tt></a></td><td align="right"><tt>0.1 kb</tt></td><td align="right"><tt>Thu, 26 Nov 2026 18:44:51 GMT</tt></td></tr>
                <tr><td align="left">&nbsp;&nbsp;<a href="/pub/x%26y%231.bin"><tt>x&amp;y#1.bin</tt></a></td><td align="right"><tt>40.0 kb</tt></td><td align="right"><tt>Thu, 26 Nov 2026 18:44:51 GMT</tt></td></tr>
                </table><hr class="line"><h3>Apache Tomcat/9.0</h3></body></html>
                """, hasVersions: true),
    ]

    /// Pages that are no listings of the folder.
    static let others: [(name: String, text: String)] = [
        (
            "a home page",
            """
            <!doctype html><html><head><title>The Project</title></head><body><h1>The Project</h1>
            <p><a href="about.html">About us</a> <a href="download/">Get it</a> <a href="https://forum.example/">Forum</a></p></body></html>
            """
        ),
        (
            "a login",
            "<html><head><title>Sign in</title></head><body><form action=\"/login\"><input name=user></form></body></html>"
        ),
        (
            "an error page",
            "<html><head><title>Welcome to nginx!</title></head><body><h1>Welcome to nginx!</h1></body></html>"
        ),
        ("nothing", ""),
        (
            "a page of a script",
            "<html><head><script src=\"app.js\"></script></head><body><div id=root></div></body></html>"
        ),
    ]
}
